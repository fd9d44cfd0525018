/*
 * cgihead: what is taken, what is mended, what is refused and as what, what is
 * left out, and the limits.
 */
#include "config.h"

#include "cases.h"

#include "cgihead.h"

#define OK        CGIHEAD_OK
#define MALFORMED CGIHEAD_MALFORMED
#define STATUS    CGIHEAD_STATUS
#define DIFFER    CGIHEAD_DIFFER
#define MISSING   CGIHEAD_MISSING
#define LENGTH    CGIHEAD_LENGTH

#define T "Content-Type: t\r\n"

/* Heads that are accepted; what follows the empty line is the body "B". */
static const struct good {
	const char *head;
	int status;
	const char *reason, *fields;
} good[] = {
	/* line ends */
	{ "Content-Type: t\n\n", 200, "", T },
	{ "Content-Type: t\r\n\r\n", 200, "", T },
	{ "Content-Type: t\r\nA: b\n\r\n", 200, "", T "A: b\r\n" },
	/* Status */
	{ "Status: 204\n\n", 204, "", "" },
	{ "Status: 201 Made it so\n\n", 201, "Made it so", "" },
	{ "sTaTuS:201\n\n", 201, "", "" },
	{ "Status: \t 404  Nope \t\n\n", 404, "Nope", "" },
	{ "Status: 200\n\n", 200, "", "" },
	{ "Status: 599\n\n", 599, "", "" },
	/* reasons */
	{ "Status: 200 d\351j\340\n\n", 200, "d\351j\340", "" },
	/* of 63 bytes ... */
	{ "Status: 200 "
	  "123456789012345678901234567890123456789012345678901234567890123"
	  "\n\n",
	    200,
	    "123456789012345678901234567890123456789012345678901234567890123",
	    "" },
	/* ... and of 64 bytes, which is left out */
	{ "Status: 200 "
	  "1234567890123456789012345678901234567890123456789012345678901234"
	  "\n\n",
	    200, "", "" },
	/* Location */
	{ "Location: http://h/p\n\n", 302, "", "Location: http://h/p\r\n" },
	{ "Location: /p\nStatus: 201\n\n", 201, "", "Location: /p\r\n" },
	{ "Location: p\n\n", 302, "", "Location: p\r\n" },
	/* order and repeats stay */
	{ "B: 1\nA: 2\nContent-Type: t\nB: 3\nb: 1\n\n", 200, "",
	    "B: 1\r\nA: 2\r\n" T "B: 3\r\nb: 1\r\n" },
	/* values and names */
	{ T "A:b\nC: \t d \t e \t\n\n", 200, "", T "A: b\r\nC: d \t e\r\n" },
	{ T "A:\nB: \n\n", 200, "", T "A: \r\nB: \r\n" },
	{ T "A: \200\377\n\n", 200, "", T "A: \200\377\r\n" },
	{ T "!#$%&'*+-.^_`|~09azAZ: x\n\n", 200, "",
	    T "!#$%&'*+-.^_`|~09azAZ: x\r\n" },
	{ T "A: b:c: d\n\n", 200, "", T "A: b:c: d\r\n" },
	/* what is left out */
	{ T "Transfer-Encoding: chunked\nKeep-Alive: 5\nA: b\n\n", 200, "",
	    T "A: b\r\n" },
	{ "Connection: x-a, Foo\nX-A: 1\n" T "foo: 2\nFoo-2: 3\n\n", 200, "",
	    T "Foo-2: 3\r\n" },
	{ "X-CGI-Foo: 1\nx-cgi-: 2\nX-CGI: 3\n" T "\n", 200, "",
	    "X-CGI: 3\r\n" T },
	/* what stays */
	{ T "Content-Length: 1\n\n", 200, "", T "Content-Length: 1\r\n" },
	{ "Status: 200 a\tb\n\n", 200, "a\tb", "" },
	{ T "HTTP: x\n\n", 200, "", T "HTTP: x\r\n" },
};

/* What the last parse() of a case made. */
static struct response r;
static struct cgihead h;

static int
renew(UNUSED void **state)
{
	response_free(&r);
	response_init(&r);
	return 0;
}

AROUND_EACH(renew, renew)

static enum cgihead_verdict
parse(const char *s, size_t len, bool eof)
{
	char *copy = exact_copy(s, len);
	enum cgihead_verdict v;

	v = cgihead_parse(copy, len, eof, &r, &h);
	free(copy);
	return v;
}

TEST(accepted)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		const struct good *g = &good[i];
		size_t n = strlen(g->head);
		char output[1024];

		snprintf(output, sizeof(output), "%sB", g->head);
		(void)renew(NULL);
		print_message("%s\n", g->head);
		assert_int_equal(parse(output, n + 1, true), OK);
		assert_int_equal(h.body_start, n);
		assert_int_equal(r.kind, RESPONSE_DOCUMENT);
		assert_int_equal(r.status, g->status);
		assert_string_equal(r.reason, g->reason);
		assert_string_equal(r.fields.data, g->fields);
		assert_int_equal(h.outcome, CGIHEAD_SAYS_NOTHING);
		assert_false(h.not_replayable);
		assert_int_equal(h.mended, 0);
		/* Without a body, and while more may come: the same. */
		assert_int_equal(parse(output, n, false), OK);
		assert_string_equal(r.fields.data, g->fields);
		/* Cut anywhere before its end it is not there yet. */
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(parse(output, k, false), CGIHEAD_MORE);
			assert_int_equal(parse(output, k, true),
			    k == 0 ? CGIHEAD_EMPTY : CGIHEAD_NO_END);
		}
	}
}

/* Heads that are mended, and what is said about it. */
#define BIT(m)      (1U << CGIHEAD_MENDED_##m)
#define EMPTY_LINE  BIT(EMPTY_LINE)
#define STATUS_LINE BIT(STATUS_LINE)
#define BLANK       BIT(BLANK)
#define FOLDED      BIT(FOLDED)
#define RUN_ON      BIT(STATUS)
#define TWICE       BIT(TWICE)

static const struct mend {
	const char *head;
	unsigned mended;
	int status;
	const char *reason, *fields;
} mends[] = {
	/* empty lines in front */
	{ "\n" T "\n", EMPTY_LINE, 200, "", T },
	{ "\r\n\r\n" T "\r\n", EMPTY_LINE, 200, "", T },
	{ "\nHTTP/1.1 201 x\n\n", EMPTY_LINE | STATUS_LINE, 201, "x", "" },
	/* status lines */
	{ "HTTP/1.1 202 Later\r\n" T "\r\n", STATUS_LINE, 202, "Later", T },
	{ "HTTP/1.0 404\n\n", STATUS_LINE, 404, "", "" },
	{ "HTTP/1.1 301 x\nLocation: /p\n\n", STATUS_LINE, 301, "x",
	    "Location: /p\r\n" },
	/* CGI.pm with -nph */
	{ "HTTP/1.0 202 Accepted\r\nServer: s\r\n"
	  "Status: 202 Accepted\r\n" T "\r\n",
	    STATUS_LINE, 202, "Accepted", "Server: s\r\n" T },
	/* Status counts before a status line */
	{ "HTTP/1.1 200 OK\nStatus: 404 Nope\n\n", STATUS_LINE, 404, "Nope",
	    "" },
	{ "HTTP/1.1 200 OK\nStatus: 404\n\n", STATUS_LINE, 404, "", "" },
	/* blanks before the colon */
	{ "Content-Type : t\n\n", BLANK, 200, "", T },
	{ "Status \t: 201\n\n", BLANK, 201, "", "" },
	/* folded lines */
	{ T "A: b\n c\n\n", FOLDED, 200, "", T "A: b c\r\n" },
	{ T "A: b \r\n\tc: d \r\n\r\n", FOLDED, 200, "", T "A: b c: d\r\n" },
	{ "A:\n b\n \t\n  c\n" T "\n", FOLDED, 200, "", "A: b c\r\n" T },
	{ "Content-Type:\n t\n\n", FOLDED, 200, "", T },
	{ "Status: 201\n Made it\n\n", FOLDED, 201, "Made it", "" },
	{ "A\n : b\n" T "\n", FOLDED | BLANK, 200, "", "A: b\r\n" T },
	{ "X-CGI-A: b\n c\n" T "\n", FOLDED, 200, "", T },
	{ T " \n\n", FOLDED, 200, "", T },
	/* Status and reason run together */
	{ "Status: 200OK\n\n", RUN_ON, 200, "OK", "" },
	{ "HTTP/1.1 404Nope\n\n", RUN_ON | STATUS_LINE, 404, "Nope", "" },
	{ "Status: 200\tOK\n\n", RUN_ON, 200, "OK", "" },
	/* twice the same */
	{ "Status: 201 A\nStatus: 201\n\n", TWICE, 201, "A", "" },
	{ T "content-type:t \n\n", TWICE, 200, "", T },
	{ "Content-Type: a b\nContent-Type: a\n b\nContent-Type: a b\n\n",
	    TWICE | FOLDED, 200, "", "Content-Type: a b\r\n" },
	{ "Location: a\nA: b\nLocation: a\n\n", TWICE, 302, "",
	    "Location: a\r\nA: b\r\n" },
	{ T "Content-Length: 1\nContent-Length: 01\n\n", TWICE, 200, "",
	    T "Content-Length: 1\r\n" },
	{ "\nHTTP/1.1 200OK\nStatus : 201\nStatus: 201\n" T " \n\n",
	    EMPTY_LINE | STATUS_LINE | RUN_ON | BLANK | TWICE | FOLDED, 201, "",
	    T },
};

TEST(mended)
{
	for (size_t i = 0; i < COUNT(mends); i++) {
		const struct mend *m = &mends[i];
		size_t n = strlen(m->head);
		char output[256];

		snprintf(output, sizeof(output), "%sB", m->head);
		(void)renew(NULL);
		print_message("%s\n", m->head);
		assert_int_equal(parse(output, n + 1, true), OK);
		assert_int_equal(h.body_start, n);
		assert_int_equal(r.status, m->status);
		assert_string_equal(r.reason, m->reason);
		assert_string_equal(r.fields.data, m->fields);
		assert_int_equal(h.mended, m->mended);
		/* The empty line in front is not the end. */
		for (size_t k = 0; k < n; k++)
			assert_int_equal(parse(output, k, false), CGIHEAD_MORE);
	}
}

static const char *const differ[] = { "Status: 200\nStatus: 201\n\n",
	"HTTP/1.1 200 OK\nStatus: 200\nStatus: 404\n\n",
	T "content-type: u\n\n", "Content-Type: a\nContent-Type: a\n b\n\n",
	"Location: a\nLocation: b\n\n",
	T "Content-Length: 1\nContent-Length: 2\n\n" };

static const char *const bad_status[] = {
	"HTTP/1.1 100 Continue\nStatus: 200\n\n", "Status:\n" T "\n",
	"Status: 2000K\n\n", "Status: 20\n\n", "Status: 2000\n\n",
	"Status: -20\n\n", "Status: 199\n\n", "Status: 100\n\n",
	"Status: 600\n\n", "Status: OK\n\n", "HTTP/2 200\n\n", "HTTP/1 200\n\n",
	"HTTP/1.1 \n\n", "HTTP/1.1\n\n", "HTTP/1.1 100 Continue\n\n"
};

/* "\0" as "\1" in these, for the list's sake. */
static const char *const malformed[] = { "HTTP/1.1 200 OK\n A: b\n\n",
	T "A: b\n c\rd\n\n", T "hello\n\n", "Hello, world\n\n", " " T "\n",
	": t\n" T "\n", "a/b: t\n" T "\n", "\351: t\n" T "\n", T "A: b\1c\n\n",
	T "A\1: b\n\n", T "A: b\rc\n\n", T "A: b\r\r\n\n", T "\r\r\n\n",
	T "A: \033[0m\n\n", T "A: \177\n\n",
	"Connection: Location\nLocation: /x\n\n",
	"Connection: content-type\n" T "\n", "HTTP/1.1 200 a\033\n\n",
	"http/1.1 200 OK\n\n", T "HTTP/1.1 200 OK\n\n" };

static const char *const missing[] = { "A: b\n\n", "X-CGI-A: b\n\n" };

static const char *const bad_length[] = { T "Content-Length:\n\n",
	T "Content-Length: one\n\n", T "Content-Length: -1\n\n",
	T "Content-Length: +1\n\n", T "Content-Length: 1, 1\n\n",
	T "Content-Length: 99999999999999999999\n\n" };

static void
check_refused(
    const char *const *heads, size_t count, enum cgihead_verdict verdict)
{
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(heads[i]);
		char output[256];

		memcpy(output, heads[i], n + 1);
		for (size_t k = 0; k < n; k++)
			if (output[k] == '\1')
				output[k] = '\0';
		(void)renew(NULL);
		print_message("%s\n", heads[i]);
		assert_int_equal(parse(output, n, true), verdict);
		assert_int_equal(parse(output, n, false), verdict);
		assert_int_equal(r.fields.len, 0);
		assert_int_equal(h.body_start, 0);
		assert_int_equal(h.content_length, -1);
	}
}

TEST(refused)
{
	check_refused(differ, COUNT(differ), DIFFER);
	check_refused(bad_status, COUNT(bad_status), STATUS);
	check_refused(malformed, COUNT(malformed), MALFORMED);
	check_refused(missing, COUNT(missing), MISSING);
	check_refused(bad_length, COUNT(bad_length), LENGTH);
}

/* Empty lines alone are no head; more may come. */
TEST(nothing_but_empty_lines)
{
	assert_int_equal(parse("\n\r\n", 3, true), CGIHEAD_NO_END);
	assert_int_equal(parse("\n\r\n", 3, false), CGIHEAD_MORE);
}

TEST(local_redirect)
{
	static const char out[] =
	    "Location: /next?a=b\nSet-Cookie: c\n\nignored";

	assert_int_equal(parse(out, sizeof(out) - 1, true), OK);
	assert_int_equal(r.kind, RESPONSE_LOCAL_REDIRECT);
	assert_int_equal(r.status, 200);
	assert_string_equal(
	    r.fields.data, "Location: /next?a=b\r\nSet-Cookie: c\r\n");
	/* A struct that was used before keeps nothing. */
	assert_int_equal(parse(T "\n", strlen(T "\n"), true), OK);
	assert_int_equal(r.kind, RESPONSE_DOCUMENT);
}

#define TEN "0123456789"
#define NONE                                         \
	"Idempotency-Outcome is none of completed, " \
	"not-executed, status, unknown"

TEST(outcome_field)
{
	static const struct {
		const char *fields;
		enum cgihead_outcome says;
		const char *doubt;
	} rows[] = {
		{ "", CGIHEAD_SAYS_NOTHING, "" },
		{ "Idempotency-Outcome: completed\n", CGIHEAD_SAYS_COMPLETED,
		    "" },
		{ "Idempotency-Outcome: not-executed\n",
		    CGIHEAD_SAYS_NOT_EXECUTED, "" },
		{ "IDEMPOTENCY-OUTCOME:  Not-Executed \r\n",
		    CGIHEAD_SAYS_NOT_EXECUTED, "" },
		{ "Idempotency-Outcome: unknown\n", CGIHEAD_SAYS_UNKNOWN, "" },
		{ "Idempotency-Outcome:\n", CGIHEAD_SAYS_UNKNOWN, NONE },
		{ "Idempotency-Outcome: not-executed!\n", CGIHEAD_SAYS_UNKNOWN,
		    NONE },
		{ "Idempotency-Outcome: not executed\n", CGIHEAD_SAYS_UNKNOWN,
		    NONE },
		{ "Idempotency-Outcome: caf\xc3\xa9\n", CGIHEAD_SAYS_UNKNOWN,
		    NONE },
		{ "Idempotency-Outcome: " TEN TEN TEN TEN TEN "\n",
		    CGIHEAD_SAYS_UNKNOWN, NONE },
		{ "Idempotency-Outcome: not-executed\n"
		  "Idempotency-Outcome: not-executed\n",
		    CGIHEAD_SAYS_UNKNOWN, "Idempotency-Outcome comes twice" },
		{ "Idempotency-Outcome: completed\n"
		  "Idempotency-Outcome: not-executed\n",
		    CGIHEAD_SAYS_UNKNOWN, "Idempotency-Outcome comes twice" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[256];

		snprintf(out, sizeof(out), "%s" T "\n", rows[i].fields);
		(void)renew(NULL);
		assert_int_equal(parse(out, strlen(out), true), OK);
		assert_int_equal(h.outcome, rows[i].says);
		assert_string_equal(h.doubt, rows[i].doubt);
		assert_string_equal(r.fields.data, T);
	}
}

TEST(sendfile_is_not_replayable)
{
	static const char *const names[] = { "X-Sendfile", "x-sendfile",
		"X-Sendfile2", "X-LIGHTTPD-send-file", "X-Accel-Redirect" };

	for (size_t i = 0; i < COUNT(names); i++) {
		char out[256], fields[256];

		snprintf(out, sizeof(out), T "%s: /f\n\n", names[i]);
		snprintf(fields, sizeof(fields), T "%s: /f\r\n", names[i]);
		(void)renew(NULL);
		assert_int_equal(parse(out, strlen(out), true), OK);
		assert_true(h.not_replayable);
		assert_string_equal(r.fields.data, fields);
	}
}

TEST(content_length)
{
	const char *out = T "content-length: 009223372036854775799\n\n";

	assert_int_equal(parse(out, strlen(out), true), OK);
	assert_true(h.content_length == INT64_C(9223372036854775799));
	out = T "Content-Length: 0\n\n";
	assert_int_equal(parse(out, strlen(out), true), OK);
	assert_true(h.content_length == 0);
	out = T "\n";
	assert_int_equal(parse(out, strlen(out), true), OK);
	assert_true(h.content_length == -1);
}

/* A head of exactly n bytes. */
static char *
head_of(size_t n)
{
	char *s = malloc(n);

	assert_non_null(s);
	memset(s, 'x', n);
	memcpy(s, T "A: ", strlen(T "A: "));
	memcpy(s + n - 4, "\r\n\r\n", 4);
	return s;
}

TEST(head_length_limit)
{
	char *s;

	s = head_of(LIMIT_HEAD);
	assert_int_equal(parse(s, LIMIT_HEAD, true), OK);
	assert_int_equal(h.body_start, LIMIT_HEAD);
	assert_int_equal(parse(s, LIMIT_HEAD - 1, false), CGIHEAD_MORE);
	free(s);
	s = head_of(LIMIT_HEAD + 1);
	assert_int_equal(parse(s, LIMIT_HEAD + 1, true), CGIHEAD_TOO_LONG);
	assert_int_equal(parse(s, LIMIT_HEAD, false), CGIHEAD_TOO_LONG);
	free(s);
}

TEST(field_count_limit)
{
	char s[LIMIT_FIELDS * 8 + 64];
	size_t n;

	for (int more = 0; more < 2; more++) {
		n = (size_t)snprintf(s, sizeof(s), T);
		for (int i = 1; i < LIMIT_FIELDS + more; i++)
			n += (size_t)snprintf(s + n, sizeof(s) - n, "A: b\n");
		n += (size_t)snprintf(s + n, sizeof(s) - n, "\n");
		assert_int_equal(
		    parse(s, n, true), more ? CGIHEAD_TOO_LONG : OK);
	}
}

/* Kept as "Name: value CRLF" the fields are longer than they were written. */
TEST(fields_that_grow_beyond_the_limit)
{
	const size_t n = LIMIT_HEAD - 2;
	char *s = malloc(n);

	assert_non_null(s);
	memset(s, 'x', n);
	memcpy(s, "Status:200\nA:", 13);
	for (size_t i = 13; i + 1024 < n; i += 1024)
		memcpy(s + i, "\nB:", 3);
	memcpy(s + n - 2, "\n\n", 2);
	assert_int_equal(parse(s, n, true), CGIHEAD_TOO_LONG);
	free(s);
}

TEST(every_verdict_has_a_text)
{
	ALL_DIFFER(cgihead_mending_text, enum cgihead_mending, 0,
	    CGIHEAD_MENDINGS - 1);
	ALL_DIFFER(cgihead_verdict_text, enum cgihead_verdict, CGIHEAD_OK,
	    CGIHEAD_NO_MEMORY);
}
