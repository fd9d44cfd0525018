/*
 * A handler's output -> status, fields, start of the body (RFC 3875, section
 * 6), strictly: doubtful output is refused, not guessed, because accepted
 * output is stored and sent again and again.
 *
 *  -  A line ends in LF or CRLF; the head ends in an empty line.  Output that
 *     ends before it is broken, because its missing part is not known.
 *  -  At least one of Content-Type, Location and Status is required.  Each of
 *     these, and Content-Length, may come once.  A first line "HTTP/1.x 200
 *     OK" is a Status.
 *  -  A Status is 200-599: an interim one is no final response.  Its reason is
 *     kept if it is short enough, and else left out: clients ignore it (RFC
 *     9112, section 4), so it is no ground to call a response broken.
 *  -  Location without Status is 302, or a local redirect if it begins with a
 *     slash (RFC 3875, section 6.2.2).  The web server finds the status of a
 *     local redirect; 200 stands for it here.
 *  -  Fields stay in order with repeats, byte for byte but for the blanks
 *     around their values.  Fields that are only for the web server or for
 *     oncewrap are left out.
 *
 * Each call makes one pass over the head, and does not read the body.
 *
 * This file knows no bodies, no exit statuses and no keys.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "cgihead.h"

/* A piece of the output. */
struct text {
	const char *p;
	size_t n;
};

struct parse {
	struct response *response;
	struct cgihead *out;
	bool content_type, location, status;
	bool is_local; /* Location begins with a slash */
	unsigned nfields;
};

typedef enum cgihead_verdict field_fn(struct parse *, struct text value);

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* tchar, RFC 9110, section 5.6.2. */
static bool
is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    is_digit(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
is_token(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!is_token_char(t.p[i]))
			return false;
	return t.n > 0;
}

/* VCHAR, obs-text, SP and HTAB, RFC 9110, section 5.5: no NUL, no CR. */
static bool
is_field_text(struct text t)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool
is_word(struct text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.p, word, t.n) == 0;
}

static struct text
trim(struct text t)
{
	while (t.n > 0 && is_blank(t.p[0]))
		t.p++, t.n--;
	while (t.n > 0 && is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

/* Takes one line off the front; false if there is no whole line. */
static bool
next_line(struct text *rest, struct text *line)
{
	const char *end = memchr(rest->p, '\n', rest->n);

	if (end == NULL)
		return false;
	line->p = rest->p;
	line->n = (size_t)(end - rest->p);
	rest->p = end + 1;
	rest->n -= line->n + 1;
	if (line->n > 0 && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

/* "201 Created": RFC 3875, section 6.3.3. */
static enum cgihead_verdict
take_status(struct parse *ps, struct text v)
{
	struct response *r = ps->response;
	int status;

	if (ps->status || v.n < 3 || (v.n > 3 && v.p[3] != ' '))
		return CGIHEAD_STATUS;
	if (!is_digit(v.p[0]) || !is_digit(v.p[1]) || !is_digit(v.p[2]))
		return CGIHEAD_STATUS;
	status = (v.p[0] - '0') * 100 + (v.p[1] - '0') * 10 + (v.p[2] - '0');
	if (status < 200 || status > 599)
		return CGIHEAD_STATUS;
	v.p += 3;
	v.n -= 3;
	v = trim(v);
	if (memchr(v.p, '\t', v.n) != NULL)
		return CGIHEAD_STATUS;
	if (v.n < sizeof(r->reason)) {
		memcpy(r->reason, v.p, v.n);
		r->reason[v.n] = '\0';
	}
	r->status = status;
	ps->status = true;
	return CGIHEAD_OK;
}

/* "HTTP/1.1 201 Created": some programs write it because they expect their
 * output to reach the client unparsed. */
static enum cgihead_verdict
take_status_line(struct parse *ps, struct text line)
{
	static const char version[] = "HTTP/1.";
	const size_t n = sizeof(version) - 1;

	if (!is_field_text(line))
		return CGIHEAD_MALFORMED;
	if (line.n < n + 2 || memcmp(line.p, version, n) != 0 ||
	    !is_digit(line.p[n]) || line.p[n + 1] != ' ')
		return CGIHEAD_STATUS;
	line.p += n + 2;
	line.n -= n + 2;
	return take_status(ps, trim(line));
}

static enum cgihead_verdict
take_content_type(struct parse *ps, struct text v)
{
	(void)v;
	if (ps->content_type)
		return CGIHEAD_REPEATED;
	ps->content_type = true;
	return CGIHEAD_OK;
}

static enum cgihead_verdict
take_location(struct parse *ps, struct text v)
{
	if (ps->location)
		return CGIHEAD_REPEATED;
	ps->location = true;
	ps->is_local = v.n > 0 && v.p[0] == '/';
	return CGIHEAD_OK;
}

static enum cgihead_verdict
take_content_length(struct parse *ps, struct text v)
{
	int64_t n = 0;

	if (ps->out->content_length != -1)
		return CGIHEAD_REPEATED;
	if (v.n == 0)
		return CGIHEAD_LENGTH;
	for (size_t i = 0; i < v.n; i++) {
		if (!is_digit(v.p[i]) || n > (INT64_MAX - 9) / 10)
			return CGIHEAD_LENGTH;
		n = n * 10 + (v.p[i] - '0');
	}
	ps->out->content_length = n;
	return CGIHEAD_OK;
}

/* Two of them contradict or repeat each other, so the outcome is unknown. */
static enum cgihead_verdict
take_outcome(struct parse *ps, struct text v)
{
	enum cgihead_outcome *says = &ps->out->outcome;

	if (*says != CGIHEAD_SAYS_NOTHING)
		*says = CGIHEAD_SAYS_UNKNOWN;
	else if (is_word(v, "completed"))
		*says = CGIHEAD_SAYS_COMPLETED;
	else if (is_word(v, "not-executed"))
		*says = CGIHEAD_SAYS_NOT_EXECUTED;
	else
		*says = CGIHEAD_SAYS_UNKNOWN;
	return CGIHEAD_OK;
}

/* The named file may change between one response and the next. */
static enum cgihead_verdict
take_sendfile(struct parse *ps, struct text v)
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
	{ "Content-Type", take_content_type, true },
	{ "Location", take_location, true },
	{ "Content-Length", take_content_length, true },
	{ "Status", take_status, false },
	{ "Idempotency-Outcome", take_outcome, false },
	{ "X-Sendfile", take_sendfile, true },
	{ "X-Sendfile2", take_sendfile, true },
	{ "X-LIGHTTPD-send-file", take_sendfile, true },
	{ "X-Accel-Redirect", take_sendfile, true },
};

static enum cgihead_verdict
keep_field(struct parse *ps, struct text name, struct text value)
{
	struct buf *fields = &ps->response->fields;
	enum rc rc = buf_add(fields, name.p, name.n);

	if (rc == RC_OK)
		rc = buf_adds(fields, ": ");
	if (rc == RC_OK)
		rc = buf_add(fields, value.p, value.n);
	if (rc == RC_OK)
		rc = buf_adds(fields, "\r\n");
	if (rc == RC_OK)
		return CGIHEAD_OK;
	return rc == RC_LIMIT ? CGIHEAD_TOO_LONG : CGIHEAD_NO_MEMORY;
}

static enum cgihead_verdict
take_field(struct parse *ps, struct text line)
{
	static const char extension[] = "X-CGI-";
	const char *colon = memchr(line.p, ':', line.n);
	enum cgihead_verdict verdict;
	struct text name, value;
	bool keep = true;

	/* A folded line begins with a blank, which is in no token; so it is
	 * refused here too. */
	if (colon == NULL)
		return CGIHEAD_MALFORMED;
	name.p = line.p;
	name.n = (size_t)(colon - line.p);
	value.p = colon + 1;
	value.n = line.n - name.n - 1;
	if (!is_token(name) || !is_field_text(value))
		return CGIHEAD_MALFORMED;
	if (++ps->nfields > LIMIT_FIELDS)
		return CGIHEAD_TOO_LONG;
	value = trim(value);

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (!is_word(name, meanings[i].name))
			continue;
		verdict = meanings[i].take(ps, value);
		if (verdict != CGIHEAD_OK)
			return verdict;
		keep = meanings[i].keep;
	}
	if (name.n >= sizeof(extension) - 1 &&
	    strncasecmp(name.p, extension, sizeof(extension) - 1) == 0)
		keep = false;
	return keep ? keep_field(ps, name, value) : CGIHEAD_OK;
}

/* head ends with its empty line, or with a line that no other line follows. */
static enum cgihead_verdict
take_lines(struct parse *ps, struct text head)
{
	enum cgihead_verdict verdict = CGIHEAD_OK;
	struct text line;

	if (head.n >= 5 && memcmp(head.p, "HTTP/", 5) == 0 &&
	    next_line(&head, &line))
		verdict = take_status_line(ps, line);
	while (verdict == CGIHEAD_OK && next_line(&head, &line) && line.n > 0)
		verdict = take_field(ps, line);
	if (verdict == CGIHEAD_OK && !ps->content_type && !ps->location &&
	    !ps->status)
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

/* Returns the offset after the empty line; 0 if there is none in these
 * bytes. */
static size_t
find_end(const char *output, size_t len)
{
	struct text rest = { output, len }, line;

	while (next_line(&rest, &line))
		if (line.n == 0)
			return len - rest.n;
	return 0;
}

static void
reset(struct response *response, struct cgihead *out)
{
	*out = (struct cgihead){ .content_length = -1 };
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
	size_t end;

	reset(response, out);
	if (len == 0)
		return eof ? CGIHEAD_EMPTY : CGIHEAD_MORE;
	end = find_end(output, len < LIMIT_HEAD ? len : LIMIT_HEAD);
	if (end == 0 && len >= LIMIT_HEAD)
		return CGIHEAD_TOO_LONG;
	if (end == 0)
		return eof ? CGIHEAD_MALFORMED : CGIHEAD_MORE;

	verdict = take_lines(&ps, (struct text){ output, end });
	if (verdict == CGIHEAD_OK)
		verdict = drop_hop_by_hop(&ps);
	if (verdict != CGIHEAD_OK) {
		reset(response, out);
		return verdict;
	}
	out->body_start = end;
	if (ps.location && !ps.status) {
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
	switch (verdict) {
	case CGIHEAD_OK:
		return "ok";
	case CGIHEAD_MORE:
		return "head has no end";
	case CGIHEAD_EMPTY:
		return "no output";
	case CGIHEAD_TOO_LONG:
		return "head is too long";
	case CGIHEAD_MALFORMED:
		return "head is malformed";
	case CGIHEAD_STATUS:
		return "Status is no final status, or given twice";
	case CGIHEAD_REPEATED:
		return "Content-Type, Location or Content-Length given twice";
	case CGIHEAD_MISSING:
		return "neither Content-Type, Location nor Status";
	case CGIHEAD_LENGTH:
		return "Content-Length is no number";
	case CGIHEAD_NO_MEMORY:
		return "no memory for the head";
	}
	assert(!"a verdict without a text");
	return "";
}
