/*
 * A handler's output -> status, fields, start of the body (RFC 3875, section
 * 6), as kindly as web servers read it: the program has worked for years.  What
 * has no single reading is refused, because an accepted response
 * is stored and sent again and again.
 *
 *  -  A line ends in LF or CRLF; the head ends in an empty line.  Output that
 *     ends before it is broken, because its missing part is not known.
 *  -  At least one of Content-Type, Location and Status is required.  Each of
 *     these, and Content-Length, may be repeated with the same value, which
 *     counts once; with another value it contradicts itself.
 *  -  A first line "HTTP/1.x 200 OK" is a status, unless there is a Status
 *     field as well: programs that expect their output to reach the client
 *     unparsed write both.
 *  -  A Status is 200-599: an interim one is no final response.  Its reason is
 *     kept if it is short enough, and else left out: clients ignore it (RFC
 *     9112, section 4), so it is no ground to call a response broken.
 *  -  Location without Status is 302, or a local redirect if it begins with a
 *     slash (RFC 3875, section 6.2.2).  The web server finds the status of a
 *     local redirect; 200 stands for it here.
 *  -  Fields stay in order with repeats, byte for byte but for the blanks
 *     around their values and for folds.  Fields that are only for the web
 *     server or for oncewrap are left out.
 *  -  Each kind of mending is noted, for the log.
 *
 * Each call makes one pass over the head, and does not read the body.
 *
 * This file knows no bodies, no exit statuses and no keys.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"

#include "cgihead.h"

struct parse {
	struct response *response;
	struct cgihead *out;
	struct buf joined; /* a folded field, on one line */
	bool content_type, location, status;
	bool status_line; /* response has its status, until there is a Status */
	bool is_local;    /* Location begins with a slash */
	bool again;       /* the field repeats an earlier one */
	unsigned nfields;
};

typedef enum cgihead_verdict field_fn(struct parse *, struct response_text);

static void
note_mended(struct parse *ps, enum cgihead_mending what)
{
	ps->out->mended |= 1U << what;
}

/* The number that the text begins with, of three digits; 0: there is none. */
static int
text_status(struct response_text t)
{
	int status = 0;

	if (t.n < 3)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		if (!ascii_is_digit(t.p[i]))
			return 0;
		status = status * 10 + (t.p[i] - '0');
	}
	return status;
}

/* "201 Created": RFC 3875, section 6.3.3.  Returns the status; 0: it is none.
 * *reason is what follows, after blanks. */
static int
cgihead_read_status(
    struct parse *ps, struct response_text v, struct response_text *reason)
{
	const int status = text_status(v);

	if (status < 200 || status > 599)
		return 0;
	reason->p = v.p + 3;
	reason->n = v.n - 3;
	if (reason->n > 0 && ascii_is_digit(reason->p[0]))
		return 0;
	if (reason->n > 0 && reason->p[0] != ' ')
		note_mended(ps, CGIHEAD_MENDED_STATUS);
	*reason = response_text_trim(*reason);
	return status;
}

static void
keep_status(struct response *r, int status, struct response_text reason)
{
	r->status = status;
	if (reason.n >= sizeof(r->reason))
		reason.n = 0;
	memcpy(r->reason, reason.p, reason.n);
	r->reason[reason.n] = '\0';
}

static enum cgihead_verdict
head_status(struct parse *ps, struct response_text v)
{
	struct response_text reason;
	int status = cgihead_read_status(ps, v, &reason);

	if (status == 0)
		return CGIHEAD_STATUS;
	if (ps->status) {
		ps->again = true;
		return status == ps->response->status ? CGIHEAD_OK
						      : CGIHEAD_DIFFER;
	}
	keep_status(ps->response, status, reason);
	ps->status = true;
	return CGIHEAD_OK;
}

/* "HTTP/1.1 201 Created". */
static enum cgihead_verdict
head_status_line(struct parse *ps, struct response_text line)
{
	static const char version[] = "HTTP/1.";
	const size_t n = sizeof(version) - 1;
	struct response_text reason;
	int status;

	if (!response_text_is_value(line))
		return CGIHEAD_MALFORMED;
	if (line.n < n + 2 || memcmp(line.p, version, n) != 0 ||
	    !ascii_is_digit(line.p[n]) || line.p[n + 1] != ' ')
		return CGIHEAD_STATUS;
	line.p += n + 2;
	line.n -= n + 2;
	status = cgihead_read_status(ps, response_text_trim(line), &reason);
	if (status == 0)
		return CGIHEAD_STATUS;
	note_mended(ps, CGIHEAD_MENDED_STATUS_LINE);
	keep_status(ps->response, status, reason);
	ps->status_line = true;
	return CGIHEAD_OK;
}

/* Compares a field that may be there once with the one before it. */
static enum cgihead_verdict
compare_once(struct parse *ps, const char *name, struct response_text v)
{
	struct field first;

	ps->again = true;
	if (response_find(&ps->response->fields, name, &first) &&
	    first.value.n == v.n && memcmp(first.value.p, v.p, v.n) == 0)
		return CGIHEAD_OK;
	return CGIHEAD_DIFFER;
}

static enum cgihead_verdict
head_content_type(struct parse *ps, struct response_text v)
{
	if (ps->content_type)
		return compare_once(ps, "Content-Type", v);
	ps->content_type = true;
	return CGIHEAD_OK;
}

static enum cgihead_verdict
head_location(struct parse *ps, struct response_text v)
{
	if (ps->location)
		return compare_once(ps, "Location", v);
	ps->location = true;
	ps->is_local = v.n > 0 && v.p[0] == '/';
	return CGIHEAD_OK;
}

static enum cgihead_verdict
head_content_length(struct parse *ps, struct response_text v)
{
	int64_t *length = &ps->out->content_length;
	int64_t n = 0;

	if (v.n == 0)
		return CGIHEAD_LENGTH;
	for (size_t i = 0; i < v.n; i++) {
		if (!ascii_is_digit(v.p[i]) || n > (INT64_MAX - 9) / 10)
			return CGIHEAD_LENGTH;
		n = n * 10 + (v.p[i] - '0');
	}
	ps->again = *length != -1;
	if (ps->again && *length != n)
		return CGIHEAD_DIFFER;
	*length = n;
	return CGIHEAD_OK;
}

/* Two of them contradict or repeat each other, so the outcome is unknown. */
static enum cgihead_verdict
head_outcome(struct parse *ps, struct response_text v)
{
	enum cgihead_outcome *says = &ps->out->outcome;

	if (*says != CGIHEAD_SAYS_NOTHING) {
		*says = CGIHEAD_SAYS_UNKNOWN;
		ps->out->doubt = "Idempotency-Outcome comes twice";
	} else if (response_text_is(v, "completed"))
		*says = CGIHEAD_SAYS_COMPLETED;
	else if (response_text_is(v, "not-executed"))
		*says = CGIHEAD_SAYS_NOT_EXECUTED;
	else if (response_text_is(v, "status"))
		*says = CGIHEAD_SAYS_STATUS;
	else {
		*says = CGIHEAD_SAYS_UNKNOWN;
		if (!response_text_is(v, "unknown"))
			ps->out->doubt =
			    "Idempotency-Outcome is none of completed, "
			    "not-executed, status, unknown";
	}
	return CGIHEAD_OK;
}

/* The named file may change between one response and the next. */
static enum cgihead_verdict
head_sendfile(struct parse *ps, struct response_text v)
{
	(void)v;
	ps->out->not_replayable = true;
	return CGIHEAD_OK;
}

static const struct meaning {
	const char *name;
	field_fn *take;
	bool keep; /* it is sent to the client */
} meanings[] = {
	{ "Content-Type", head_content_type, true },
	{ "Location", head_location, true },
	{ "Content-Length", head_content_length, true },
	{ "Status", head_status, false },
	{ "Idempotency-Outcome", head_outcome, false },
	{ "X-Sendfile", head_sendfile, true },
	{ "X-Sendfile2", head_sendfile, true },
	{ "X-LIGHTTPD-send-file", head_sendfile, true },
	{ "X-Accel-Redirect", head_sendfile, true },
};

static enum cgihead_verdict
keep_field(
    struct parse *ps, struct response_text name, struct response_text value)
{
	enum rc rc = buf_addf(&ps->response->fields, "%.*s: %.*s\r\n",
	    (int)name.n, name.p, (int)value.n, value.p);

	if (rc == RC_OK)
		return CGIHEAD_OK;
	return rc == RC_LIMIT ? CGIHEAD_TOO_LONG : CGIHEAD_NO_MEMORY;
}

static enum cgihead_verdict
head_field(struct parse *ps, struct response_text line)
{
	static const char extension[] = "X-CGI-";
	enum cgihead_verdict verdict;
	struct response_text before, name, value;
	bool keep = true;

	if (!response_text_split(line, &before, &value))
		return CGIHEAD_MALFORMED;
	name = response_text_trim_end(before);
	if (name.n < before.n)
		note_mended(ps, CGIHEAD_MENDED_BLANK);
	if (!response_text_is_token(name) || !response_text_is_value(value))
		return CGIHEAD_MALFORMED;
	if (++ps->nfields > LIMIT_FIELDS)
		return CGIHEAD_TOO_LONG;
	value = response_text_trim(value);

	ps->again = false;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (!response_text_is(name, meanings[i].name))
			continue;
		verdict = meanings[i].take(ps, value);
		if (verdict != CGIHEAD_OK)
			return verdict;
		keep = meanings[i].keep;
	}
	if (ps->again)
		note_mended(ps, CGIHEAD_MENDED_TWICE);
	if (name.n >= sizeof(extension) - 1 &&
	    strncasecmp(name.p, extension, sizeof(extension) - 1) == 0)
		keep = false;
	return keep && !ps->again ? keep_field(ps, name, value) : CGIHEAD_OK;
}

static void
join_lines(struct buf *joined, struct response_text more)
{
	if (more.n > 0 && joined->len > 0)
		buf_addc(joined, ' ');
	buf_add(joined, more.p, more.n);
}

/*
 * Takes the lines that continue a field off the front of rest: they begin with
 * a blank (RFC 9112, section 5.2).  If there are any, joins them to line, with
 * one space for each fold; line is then in joined.  RC_OK, or as buf_add().
 */
static enum rc
unfold_lines(
    struct response_text *rest, struct response_text *line, struct buf *joined)
{
	struct response_text more;

	if (rest->n == 0 || !ascii_is_blank(rest->p[0]))
		return RC_OK;
	buf_clear(joined);
	join_lines(joined, response_text_trim_end(*line));
	while (rest->n > 0 && ascii_is_blank(rest->p[0]) &&
	    response_text_line(rest, &more))
		join_lines(joined, response_text_trim(more));
	line->p = joined->data;
	line->n = joined->len;
	return joined->rc;
}

/* Takes one field, which may be folded, off the front of the head. */
static enum cgihead_verdict
head_lines(
    struct parse *ps, struct response_text *head, struct response_text line)
{
	const char *first = line.p;
	enum rc rc = unfold_lines(head, &line, &ps->joined);

	if (rc != RC_OK)
		return rc == RC_LIMIT ? CGIHEAD_TOO_LONG : CGIHEAD_NO_MEMORY;
	if (line.p != first)
		note_mended(ps, CGIHEAD_MENDED_FOLDED);
	return head_field(ps, line);
}

/* head ends with its empty line. */
static enum cgihead_verdict
cgihead_take_head(struct parse *ps, struct response_text head)
{
	enum cgihead_verdict verdict = CGIHEAD_OK;
	struct response_text line;

	if (head.n >= 5 && memcmp(head.p, "HTTP/", 5) == 0 &&
	    response_text_line(&head, &line))
		verdict = head_status_line(ps, line);
	while (verdict == CGIHEAD_OK && response_text_line(&head, &line) &&
	    line.n > 0)
		verdict = head_lines(ps, &head, line);
	if (verdict == CGIHEAD_OK && !ps->content_type && !ps->location &&
	    !ps->status && !ps->status_line)
		verdict = CGIHEAD_MISSING;
	return verdict;
}

/* Removes the hop-by-hop fields.  Refuses a Connection field that names
 * Content-Type or Location. */
static enum cgihead_verdict
drop_hop_by_hop(struct parse *ps)
{
	struct buf *fields = &ps->response->fields;
	struct field f;

	response_remove_hop_by_hop(ps->response);
	if ((ps->content_type && !response_find(fields, "Content-Type", &f)) ||
	    (ps->location && !response_find(fields, "Location", &f)))
		return CGIHEAD_MALFORMED;
	return CGIHEAD_OK;
}

/*
 * Finds the head in the first len bytes of an output.  Returns the offset after
 * the empty line that ends it; 0: there is none.  *start is where the head
 * begins, after empty lines in front.
 */
static size_t
find_head(const char *output, size_t len, size_t *start)
{
	struct response_text rest = { output, len }, line;

	*start = 0;
	while (response_text_line(&rest, &line)) {
		if (line.n > 0)
			break;
		*start = len - rest.n;
	}
	while (response_text_line(&rest, &line))
		if (line.n == 0)
			return len - rest.n;
	return 0;
}

static void
cgihead_reset(struct response *response, struct cgihead *out)
{
	*out = (struct cgihead){ .content_length = -1, .doubt = "" };
	response->kind = RESPONSE_DOCUMENT;
	response->status = 200;
	response->reason[0] = '\0';
	buf_clear(&response->fields);
}

enum cgihead_verdict
cgihead_parse(const char *output, size_t len, bool eof,
    struct response *response, struct cgihead *out)
{
	struct parse ps = { .response = response, .out = out };
	enum cgihead_verdict verdict;
	size_t start, end;

	cgihead_reset(response, out);
	if (len == 0)
		return eof ? CGIHEAD_EMPTY : CGIHEAD_MORE;
	end = find_head(output, len < LIMIT_HEAD ? len : LIMIT_HEAD, &start);
	if (end == 0 && len >= LIMIT_HEAD)
		return CGIHEAD_TOO_LONG;
	if (end == 0)
		return eof ? CGIHEAD_NO_END : CGIHEAD_MORE;

	buf_init(&ps.joined, LIMIT_HEAD);
	if (start > 0)
		note_mended(&ps, CGIHEAD_MENDED_EMPTY_LINE);
	verdict = cgihead_take_head(
	    &ps, (struct response_text){ output + start, end - start });
	buf_free(&ps.joined);
	if (verdict == CGIHEAD_OK)
		verdict = drop_hop_by_hop(&ps);
	if (verdict != CGIHEAD_OK) {
		cgihead_reset(response, out);
		return verdict;
	}
	out->body_start = end;
	if (ps.location && !ps.status && !ps.status_line) {
		if (ps.is_local)
			response->kind = RESPONSE_LOCAL_REDIRECT;
		else
			response->status = 302;
	}
	return CGIHEAD_OK;
}

const char *
cgihead_verdict_text(enum cgihead_verdict verdict)
{
	static const char *const texts[] = { CGIHEAD_VERDICTS(WORDS_WORD) };

	return texts[verdict];
}

const char *
cgihead_mending_text(enum cgihead_mending mending)
{
	static const char *const texts[] = { CGIHEAD_MENDING(WORDS_WORD) };

	return texts[mending];
}
