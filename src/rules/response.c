/*
 * A response's status and header fields.
 *
 * The fields are one block of text, so that the same bytes are stored,
 * replayed and sent.  This file does not know the meaning of the fields,
 * except for the hop-by-hop ones.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "conf_value.h"

#include "response.h"

/* --- the text of a head ----------------------------------------------- */

bool
response_text_is_token(struct response_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.p[i] == '\0' || strchr(CONF_TOKEN, t.p[i]) == NULL)
			return false;
	return t.n > 0;
}

bool
response_text_is_value(struct response_text t)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool
response_text_is(struct response_text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.p, word, t.n) == 0;
}

struct response_text
response_text_trim_end(struct response_text t)
{
	while (t.n > 0 && ascii_is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

struct response_text
response_text_trim(struct response_text t)
{
	while (t.n > 0 && ascii_is_blank(t.p[0]))
		t.p++, t.n--;
	return response_text_trim_end(t);
}

bool
response_text_line(struct response_text *rest, struct response_text *line)
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

bool
response_text_split(struct response_text line, struct response_text *name,
    struct response_text *value)
{
	const char *colon = memchr(line.p, ':', line.n);

	if (colon == NULL)
		return false;
	name->p = line.p;
	name->n = (size_t)(colon - line.p);
	value->p = colon + 1;
	value->n = line.n - name->n - 1;
	return true;
}

/* --- responses -------------------------------------------------------- */

/* RFC 9110, section 7.6.1, and the fields that RFC 2616, section 13.5.1 added:
 * they apply to one connection, or to a coding that ends at the web server. */
static const char *const hop_by_hop[] = {
	"Connection",
	"Keep-Alive",
	"Proxy-Authenticate",
	"Proxy-Authorization",
	"Proxy-Connection",
	"TE",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
};
#define NHOP (sizeof(hop_by_hop) / sizeof(hop_by_hop[0]))

/* Replaces the first character of the name of a field that will be removed. */
#define MARK '\0'

void
response_init(struct response *r)
{
	r->kind = RESPONSE_DOCUMENT;
	r->status = 200;
	r->reason[0] = '\0';
	r->as_given = false;
	buf_init(&r->fields, LIMIT_HEAD);
	r->body = NULL;
	r->body_len = 0;
}

void
response_free(struct response *r)
{
	if (r == NULL)
		return;
	buf_free(&r->fields);
	response_init(r);
}

enum rc
response_add(struct response *r, const char *name, const char *value)
{
	if (!conf_value_made_of(name, CONF_TOKEN) ||
	    strpbrk(value, "\r\n") != NULL)
		return RC_INVALID;
	r->fields.max = LIMIT_HEAD + LIMIT_OWN_FIELDS;
	return buf_addf(&r->fields, "%s: %s\r\n", name, value);
}

/* Adds one line, which is without its line end. */
static enum rc
response_add_line(struct response *r, struct response_text line)
{
	struct response_text name, value;

	if (!response_text_split(line, &name, &value) ||
	    !response_text_is_token(name) ||
	    memchr(line.p, '\0', line.n) != NULL ||
	    memchr(line.p, '\r', line.n) != NULL)
		return RC_INVALID;
	value = response_text_trim(value);
	return buf_addf(&r->fields, "%.*s: %.*s\r\n", (int)name.n, name.p,
	    (int)value.n, value.p);
}

enum rc
response_add_lines(struct response *r, const char *text, size_t len)
{
	struct response_text rest = { text, len }, line;
	enum rc rc = RC_OK;

	while (rest.n > 0 && rc == RC_OK) {
		if (!response_text_line(&rest, &line)) {
			line = rest;
			rest.n = 0;
		}
		rc = response_add_line(r, line);
	}
	return rc;
}

bool
response_is_block(const char *text, size_t len)
{
	struct response_text rest = { text, len }, line, name, value;

	while (rest.n > 0)
		if (!response_text_line(&rest, &line) ||
		    line.p[line.n] != '\r' ||
		    memchr(line.p, '\r', line.n) != NULL ||
		    memchr(line.p, '\0', line.n) != NULL ||
		    !response_text_split(line, &name, &value) || name.n == 0)
			return false;
	return true;
}

bool
response_next(const struct buf *fields, size_t *pos, struct field *out)
{
	struct response_text rest, line;

	assert(*pos <= fields->len);
	rest =
	    (struct response_text){ fields->data + *pos, fields->len - *pos };
	if (!response_text_line(&rest, &line) ||
	    !response_text_split(line, &out->name, &out->value))
		return false;
	*pos = fields->len - rest.n;
	out->value = response_text_trim(out->value);
	return true;
}

bool
response_find(const struct buf *fields, const char *name, struct field *out)
{
	size_t pos = 0;

	while (response_next(fields, &pos, out))
		if (response_text_is(out->name, name))
			return true;
	return false;
}

static void
mark(struct buf *fields, const struct field *f)
{
	fields->data[f->name.p - fields->data] = MARK;
}

/* Whether an option of that Connection field is the name of f. */
static bool
is_option(const struct field *connection, const struct field *f)
{
	const char *p = connection->value.p, *end = p + connection->value.n;
	size_t n;

	while (p < end) {
		for (n = 0; p + n < end && p[n] != ',' && !ascii_is_blank(p[n]);
		     n++)
			;
		if (n == f->name.n && strncasecmp(p, f->name.p, n) == 0)
			return true;
		p += n;
		while (p < end && (*p == ',' || ascii_is_blank(*p)))
			p++;
	}
	return false;
}

/* Marks the fields that a Connection field names.  Fields are few and options
 * may be many, so each field is looked for among the options. */
static void
mark_options(struct buf *fields)
{
	struct field f, c;
	size_t pos = 0, at;

	while (response_next(fields, &pos, &f)) {
		if (response_text_is(f.name, "Connection"))
			continue;
		for (at = 0; response_next(fields, &at, &c);)
			if (response_text_is(c.name, "Connection") &&
			    is_option(&c, &f)) {
				mark(fields, &f);
				break;
			}
	}
}

static bool
is_one_of(const struct field *f, const char *const *names, size_t n)
{
	while (n > 0 && !response_text_is(f->name, names[n - 1]))
		n--;
	return n > 0;
}

void
response_remove(struct response *r, const char *const *names, size_t n)
{
	struct buf *fields = &r->fields;
	size_t pos = 0, start = 0, w = 0;
	struct field f;

	while (response_next(fields, &pos, &f)) {
		if (*f.name.p != MARK && !is_one_of(&f, names, n)) {
			memmove(fields->data + w, fields->data + start,
			    pos - start);
			w += pos - start;
		}
		start = pos;
	}
	buf_truncate(fields, w);
}

void
response_remove_own(struct response *r)
{
	static const char *const own[] = { "Idempotent-Replayed",
		"Idempotency-Expires" };

	response_remove(r, own, 2);
}

void
response_remove_hop_by_hop(struct response *r)
{
	mark_options(&r->fields);
	response_remove(r, hop_by_hop, NHOP);
}

enum rc
response_head(const struct response *r, struct buf *out)
{
	size_t before = out->len;
	const char *reason = r->reason;
	enum rc rc;

	assert(r->status >= 100 && r->status <= 999);
	if (*reason == '\0')
		reason = response_reason(r->status);
	if (r->kind == RESPONSE_DOCUMENT)
		buf_addf(out, "Status: %d %s\r\n", r->status, reason);
	buf_add(out, r->fields.data, r->fields.len);
	if ((rc = buf_adds(out, "\r\n")) != RC_OK)
		buf_truncate(out, before);
	return rc;
}

/* RFC 9110, section 15, as far as answers of ours and of most programs go.
 * Clients ignore the phrase (RFC 9112, section 4), but some web servers send a
 * status line without its second blank if there is none. */
static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 422, "Unprocessable Content" },
	{ 425, "Too Early" },
	{ 429, "Too Many Requests" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
};

const char *
response_reason(int status)
{
	static const char *const classes[] = { "", "", "Success", "Redirection",
		"Client Error", "Server Error" };

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return status >= 200 && status <= 599 ? classes[status / 100] : "";
}
