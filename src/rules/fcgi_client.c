/*
 * The FastCGI record layer of a client.
 *
 * Nothing is gathered: output and errors are handed on as they arrive, and of
 * all other records only the eight bytes of FCGI_END_REQUEST are looked at.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include <fastcgi.h>

#include "fcgi.h"

/* A connection carries one request. */
#define ID 1

/* The most bytes that the lengths of a name-value pair take. */
#define PAIR_LENGTHS 8

/* --- the request -------------------------------------------------------- */

static enum rc
add_record(struct buf *out, unsigned type, const void *bytes, size_t n)
{
	static const unsigned char zeros[8];
	const size_t padding = -n & 7;
	unsigned char header[8];

	assert(n <= FCGI_CONTENT_MAX);
	fcgi_put_header(header, type, ID, n, padding);
	buf_add(out, header, sizeof(header));
	buf_add(out, bytes, n);
	return buf_add(out, zeros, padding);
}

/* A length of a name-value pair (section 3.4): one byte, or four. */
static char *
put_length(char *at, size_t n)
{
	if (n >= 0x80) {
		*at++ = (char)(n >> 24 | 0x80);
		*at++ = (char)(n >> 16);
		*at++ = (char)(n >> 8);
	}
	*at++ = (char)n;
	return at;
}

static enum rc
add_pair(struct buf *out, const char *variable)
{
	const size_t name = strcspn(variable, "=");
	const char *value = variable + name + (variable[name] == '=');
	const size_t length = strlen(value);
	enum rc rc = buf_reserve(out, PAIR_LENGTHS + name + length);
	char *at;

	if (rc != RC_OK)
		return rc;
	at = put_length(out->data + out->len, name);
	at = put_length(at, length);
	memcpy(at, variable, name);
	memcpy(at + name, value, length + 1); /* there is room for a NUL */
	buf_commit(out, (size_t)(at - out->data) - out->len + name + length);
	return RC_OK;
}

static bool
is_named(const char *variable, const char *name)
{
	const size_t n = strlen(name);

	return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

enum rc
fcgi_client_begin(struct buf *out, char *const *envp, const char *but)
{
	const unsigned char body[8] = { 0, FCGI_RESPONDER };
	struct buf pairs;
	size_t at, n = 0;
	enum rc rc;

	for (at = 0; envp[at] != NULL; at++)
		n += PAIR_LENGTHS + strlen(envp[at]);
	buf_init(&pairs, out->max);
	if ((rc = buf_reserve(&pairs, n)) == RC_OK)
		add_record(out, FCGI_BEGIN_REQUEST, body, sizeof(body));
	for (; rc == RC_OK && *envp != NULL; envp++)
		if (but == NULL || !is_named(*envp, but))
			rc = add_pair(&pairs, *envp);
	for (at = 0; at < pairs.len; at += n) {
		n = pairs.len - at;
		if (n > FCGI_CONTENT_MAX)
			n = FCGI_CONTENT_MAX;
		add_record(out, FCGI_PARAMS, pairs.data + at, n);
	}
	if (rc == RC_OK)
		rc = add_record(out, FCGI_PARAMS, NULL, 0);
	buf_free(&pairs);
	return rc;
}

enum rc
fcgi_client_stdin(struct buf *out, const void *bytes, size_t n)
{
	return add_record(out, FCGI_STDIN, bytes, n);
}

/* --- the answer --------------------------------------------------------- */

void
fcgi_client_init(struct fcgi_client *c)
{
	memset(c, 0, sizeof(*c));
}

static enum fcgi_client_event
no_answer(struct fcgi_client *c, const char *why)
{
	c->over = true;
	c->why = why;
	return FCGI_CLIENT_ERROR;
}

static bool
is_about_request(const struct fcgi_client *c)
{
	return fcgi_record_id(&c->in) == ID;
}

/* The header is complete. */
static enum fcgi_client_event
begin_answer(struct fcgi_client *c)
{
	const unsigned type = fcgi_record_type(&c->in);

	if (c->in.header[0] != FCGI_VERSION_1)
		return no_answer(c, "not FastCGI 1");
	if (!is_about_request(
		c)) /* about the connection, or about nothing we asked */
		return FCGI_CLIENT_MORE;
	if (type == FCGI_STDOUT || type == FCGI_STDERR)
		return FCGI_CLIENT_MORE;
	if (type != FCGI_END_REQUEST)
		return no_answer(c, "a record that no application sends");
	if (c->in.content_left != FCGI_BODY_SIZE)
		return no_answer(c, "FCGI_END_REQUEST of a wrong size");
	return FCGI_CLIENT_MORE;
}

/* FCGI_END_REQUEST, section 5.5. */
static enum fcgi_client_event
end_request(struct fcgi_client *c)
{
	const unsigned char *body = c->in.body;

	c->over = true;
	c->status = (uint32_t)body[0] << 24 | (uint32_t)body[1] << 16 |
	    (uint32_t)body[2] << 8 | body[3];
	c->refused = body[4] != FCGI_REQUEST_COMPLETE;
	return FCGI_CLIENT_END;
}

/* n bytes of content have come; none is left if the record is whole. */
static enum fcgi_client_event
add_content(struct fcgi_client *c, const unsigned char *p, size_t n)
{
	if (!is_about_request(c))
		return FCGI_CLIENT_MORE;
	if (fcgi_record_type(&c->in) == FCGI_END_REQUEST)
		return c->in.content_left == 0 ? end_request(c)
					       : FCGI_CLIENT_MORE;
	c->bytes = p;
	c->len = n;
	return fcgi_record_type(&c->in) == FCGI_STDOUT ? FCGI_CLIENT_STDOUT
						       : FCGI_CLIENT_STDERR;
}

enum fcgi_client_event
fcgi_client_feed(
    struct fcgi_client *c, const void *data, size_t len, size_t *used)
{
	const unsigned char *p = data, *end = p + len, *bytes;
	enum fcgi_client_event event = FCGI_CLIENT_MORE;
	enum fcgi_part part;
	size_t n;

	assert(!c->over);
	do {
		part = fcgi_record_next(&c->in, &p, end, &bytes, &n);
		if (part == FCGI_PART_HEADER)
			event = begin_answer(c);
		else if (part == FCGI_PART_CONTENT)
			event = add_content(c, bytes, n);
	} while (event == FCGI_CLIENT_MORE && part != FCGI_PART_NONE);
	*used = len - (size_t)(end - p);
	return event;
}
