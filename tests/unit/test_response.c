/*
 * response: fields in order with repeats, what is refused, what is removed,
 * and the head that a web server gets.
 */
#include "config.h"

#include "cases.h"

#include "response.h"

/* The response of a case. */
static struct response r;

static int
renew(UNUSED void **state)
{
	response_free(&r);
	response_init(&r);
	return 0;
}

AROUND_EACH(renew, renew)

TEST(new_one_is_an_empty_200)
{
	assert_int_equal(r.status, 200);
	assert_int_equal(r.kind, RESPONSE_DOCUMENT);
	assert_string_equal(r.reason, "");
	assert_int_equal(r.fields.len, 0);
	assert_null(r.body);
	response_free(NULL);
}

TEST(lines_become_fields)
{
	static const struct {
		const char *lines, *fields; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "A: b", "A: b\r\n" },
		{ "A:b\n", "A: b\r\n" },
		{ "A: \t b \t\r\n", "A: b\r\n" },
		{ "A:", "A: \r\n" },
		{ "A: b\r\nA: c\na:d: e", "A: b\r\nA: c\r\na: d: e\r\n" },
		{ "A: \xe4\xff", "A: \xe4\xff\r\n" },
		{ "\n", NULL },
		{ "A: b\n\n", NULL },
		{ "A: b\r\n\r\n", NULL },
		{ "A", NULL },
		{ ": b", NULL },
		{ " A: b", NULL },
		{ "A : b", NULL },
		{ "A: b\n c", NULL },
		{ "A: b\rC: d", NULL },
		{ "A: b\r", NULL },
		{ "\xe4: b", NULL },
	};
	enum rc rc;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		(void)renew(NULL);
		rc = response_add_lines(
		    &r, rows[i].lines, strlen(rows[i].lines));
		if (rows[i].fields == NULL)
			assert_int_equal(rc, RC_INVALID);
		else {
			assert_ok(rc);
			assert_string_equal(r.fields.data, rows[i].fields);
		}
	}
	assert_int_equal(response_add_lines(&r, "A: \0", 4), RC_INVALID);
}

static const struct {
	const char *name;
	const char *field, *value;
	enum rc rc;
} adds[] = {
	{ "plain", "Location", "/a", RC_OK },
	{ "empty value", "X-A", "", RC_OK },
	{ "value with colon", "X-A", "a:b", RC_OK },
	{ "bytes beyond ASCII in the value", "X-A", "\xe4\xff", RC_OK },
	{ "every sign of a token", "!#$%&'*+-.^_`|~9", "a", RC_OK },
	{ "CR in the value", "X-A", "a\rb", RC_INVALID },
	{ "LF in the value", "X-A", "a\nX-B: c", RC_INVALID },
	{ "empty name", "", "a", RC_INVALID },
	{ "blank in the name", "X A", "a", RC_INVALID },
	{ "colon in the name", "X:", "a", RC_INVALID },
	{ "LF in the name", "X\nY", "a", RC_INVALID },
	{ "name beyond ASCII", "X-\xe4", "a", RC_INVALID },
};

TEST(what_may_be_added)
{
	size_t i;

	for (i = 0; i < COUNT(adds); i++) {
		(void)renew(NULL);
		if (response_add(&r, adds[i].field, adds[i].value) !=
		    adds[i].rc)
			fail_msg("%s", adds[i].name);
		assert_true((r.fields.len > 0) == (adds[i].rc == RC_OK));
	}
}

TEST(fields_above_the_limit_are_refused)
{
	size_t len = 0;
	enum rc rc;

	while ((rc = response_add(&r, "X-Name", "some value")) == RC_OK)
		len = r.fields.len;
	assert_int_equal(rc, RC_LIMIT);
	assert_int_equal(r.fields.len, len);
	assert_true(len <= LIMIT_HEAD + LIMIT_OWN_FIELDS);
	assert_true(len > LIMIT_HEAD + LIMIT_OWN_FIELDS - 20);
}

static void
assert_field(const struct field *f, const char *name, const char *value)
{
	assert_int_equal(f->name.n, strlen(name));
	assert_memory_equal(f->name.p, name, f->name.n);
	assert_int_equal(f->value.n, strlen(value));
	assert_memory_equal(f->value.p, value, f->value.n);
}

TEST(walk_keeps_order_and_repeats)
{
	struct field f;
	size_t pos = 0;

	assert_ok(response_add(&r, "Set-Cookie", "a=1"));
	assert_ok(response_add(&r, "Link", " \t<b>; c:d \t"));
	assert_ok(response_add(&r, "Set-Cookie", "a=2"));
	assert_ok(response_add(&r, "X-Empty", ""));

	assert_true(response_next(&r.fields, &pos, &f));
	assert_field(&f, "Set-Cookie", "a=1");
	assert_true(response_next(&r.fields, &pos, &f));
	assert_field(&f, "Link", "<b>; c:d");
	assert_true(response_next(&r.fields, &pos, &f));
	assert_field(&f, "Set-Cookie", "a=2");
	assert_true(response_next(&r.fields, &pos, &f));
	assert_field(&f, "X-Empty", "");
	assert_false(response_next(&r.fields, &pos, &f));
	assert_false(response_next(&r.fields, &pos, &f));

	assert_true(response_find(&r.fields, "SET-cookie", &f));
	assert_field(&f, "Set-Cookie", "a=1");
	assert_true(response_text_is(f.name, "set-COOKIE"));
	assert_false(response_text_is(f.name, "Set-Cookie2"));
	assert_false(response_text_is(f.name, "Set-Cooki"));
	assert_false(response_find(&r.fields, "Cookie", &f));
}

TEST(walk_ends_where_the_block_is_broken)
{
	static const char *const blocks[] = { "X-A", "X-A\r\n", "X-A: b" };
	struct field f;
	struct buf b;
	size_t i, pos;

	for (i = 0; i < COUNT(blocks); i++) {
		buf_init(&b, 100);
		assert_ok(buf_adds(&b, blocks[i]));
		pos = 0;
		assert_false(response_next(&b, &pos, &f));
		buf_free(&b);
	}
}

static const struct {
	const char *name, *before, *after;
} removals[] = {
	{ "no fields", "", "" },
	{ "none of them", "A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n" },
	{ "the only one", "Date: x\r\n", "" },
	{ "first, middle and last",
	    "date: x\r\nA: 1\r\nSet-Cookie: y\r\nB: 2\r\nDATE: z\r\n",
	    "A: 1\r\nB: 2\r\n" },
	{ "neighbours", "A: 1\r\nDate: x\r\nDate: y\r\nB: 2\r\n",
	    "A: 1\r\nB: 2\r\n" },
	{ "names that only begin alike", "Dates: 1\r\nDat: 2\r\n",
	    "Dates: 1\r\nDat: 2\r\n" },
};

TEST(removal_by_name)
{
	static const char *const names[] = { "Set-Cookie", "Date" };
	size_t i;

	for (i = 0; i < COUNT(removals); i++) {
		(void)renew(NULL);
		assert_ok(buf_adds(&r.fields, removals[i].before));
		response_remove(&r, NULL, 0);
		assert_string_equal(r.fields.data, removals[i].before);
		response_remove(&r, names, COUNT(names));
		if (strcmp(r.fields.data, removals[i].after) != 0)
			fail_msg("%s: %s", removals[i].name, r.fields.data);
		assert_int_equal(r.fields.len, strlen(removals[i].after));
	}
}

static const struct {
	const char *name, *before, *after;
} hops[] = {
	{ "no fields", "", "" },
	{ "every hop-by-hop field, in any case",
	    "A: 1\r\nconnection: close\r\nKeep-Alive: x\r\nTE: x\r\n"
	    "Proxy-Connection: x\r\nTransfer-Encoding: chunked\r\n"
	    "UPGRADE: x\r\nTrailer: x\r\nProxy-Authenticate: x\r\n"
	    "Proxy-Authorization: x\r\nB: 2\r\n",
	    "A: 1\r\nB: 2\r\n" },
	{ "named by Connection, before and after it",
	    "X-a: 1\r\nConnection: x-A ,\tX-B,,close\r\nX-B: 2\r\nX-C: 3\r\n",
	    "X-C: 3\r\n" },
	{ "Connection names itself, a second one follows",
	    "Connection: connection\r\nConnection: X-A\r\nX-A: 1\r\nB: 2\r\n",
	    "B: 2\r\n" },
	{ "field that Connection names twice",
	    "Connection: X-A, X-A\r\nX-A: 1\r\nX-A: 2\r\nB: 3\r\n",
	    "B: 3\r\n" },
	{ "empty Connection", "Connection:\r\nB: 2\r\n", "B: 2\r\n" },
	{ "end-to-end fields stay", "Set-Cookie: a\r\nDate: b\r\nTEa: c\r\n",
	    "Set-Cookie: a\r\nDate: b\r\nTEa: c\r\n" },
};

TEST(removal_of_hop_by_hop_fields)
{
	size_t i;

	for (i = 0; i < COUNT(hops); i++) {
		(void)renew(NULL);
		assert_ok(buf_adds(&r.fields, hops[i].before));
		response_remove_hop_by_hop(&r);
		if (strcmp(r.fields.data, hops[i].after) != 0)
			fail_msg("%s: %s", hops[i].name, r.fields.data);
	}
}

static const struct {
	const char *name;
	enum response_kind kind;
	int status;
	const char *reason, *fields, *head;
} heads[] = {
	{ "registered reason", RESPONSE_DOCUMENT, 201, "", "A: 1\r\n",
	    "Status: 201 Created\r\nA: 1\r\n\r\n" },
	{ "reason of the handler", RESPONSE_DOCUMENT, 201, "Made", "",
	    "Status: 201 Made\r\n\r\n" },
	{ "status without a name", RESPONSE_DOCUMENT, 299, "", "",
	    "Status: 299 Success\r\n\r\n" },
	{ "local redirect", RESPONSE_LOCAL_REDIRECT, 200, "",
	    "Location: /a\r\n", "Location: /a\r\n\r\n" },
};

TEST(head_for_the_web_server)
{
	struct buf out;
	size_t i;

	for (i = 0; i < COUNT(heads); i++) {
		(void)renew(NULL);
		buf_init(&out, 100);
		r.kind = heads[i].kind;
		r.status = heads[i].status;
		strcpy(r.reason, heads[i].reason);
		assert_ok(buf_adds(&r.fields, heads[i].fields));
		assert_ok(response_head(&r, &out));
		if (strcmp(out.data, heads[i].head) != 0)
			fail_msg("%s: %s", heads[i].name, out.data);
		buf_free(&out);
	}
}

TEST(head_that_does_not_fit_leaves_nothing)
{
	struct buf out;
	size_t max;

	assert_ok(response_add(&r, "A", "1"));
	for (max = 1; max < 23; max++) {
		buf_init(&out, max);
		assert_ok(buf_addc(&out, 'x'));
		assert_int_equal(response_head(&r, &out), RC_LIMIT);
		assert_string_equal(out.data, "x");
		buf_free(&out);
	}
}

TEST(reasons_of_all_statuses)
{
	assert_string_equal(response_reason(200), "OK");
	assert_string_equal(response_reason(411), "Length Required");
	assert_string_equal(response_reason(422), "Unprocessable Content");
	assert_string_equal(response_reason(429), "Too Many Requests");
	assert_string_equal(response_reason(504), "Gateway Timeout");
	assert_string_equal(response_reason(299), "Success");
	assert_string_equal(response_reason(451), "Client Error");
	assert_string_equal(response_reason(600), "");
	assert_string_equal(response_reason(0), "");
	assert_string_equal(response_reason(-1), "");
}
