/*
 * The FastCGI record layer: bytes in, events out.
 *
 * A record passes through four steps, and the end of the input may interrupt
 * each of them: its header is gathered, begin_record() checks it,
 * record_content() takes its content, its padding is skipped, and end_record()
 * handles the whole record.  An event about a whole record comes only after its
 * padding, so that no byte of it is left unread on the socket.
 *
 *  1. state is IDLE exactly while id is 0.
 *  2. text holds raw name-value pairs in state PARAMS.  From FCGI_EV_HEAD on
 *     it holds the strings that params point to, and does not move.
 *  3. Only text and reply hold data, and these are bounded.
 *
 * This file knows no socket, no clock and no configuration.
 */
#include "config.h"

#include <sys/param.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <fastcgi.h>

#include "limit.h"

#include "fcgi.h"

/* Replies that the caller has not fetched yet (bytes); one is at most about
 * 100 bytes. */
#define REPLY_MAX 4096
/* Memory for parameters (bytes) that is kept for the next request on the
 * connection. */
#define TEXT_KEEP (16 * 1024)

enum fcgi_state {
	STATE_IDLE,   /* no request has begun */
	STATE_PARAMS, /* between FCGI_BEGIN_REQUEST and the empty FCGI_PARAMS */
	STATE_STDIN,  /* before the empty FCGI_STDIN */
	STATE_DONE,   /* until fcgi_next() */
	STATE_BROKEN  /* after FCGI_EV_ERROR, for good */
};

unsigned
fcgi_record_type(const struct fcgi_record *r)
{
	return r->header[1];
}

uint16_t
fcgi_record_id(const struct fcgi_record *r)
{
	return (uint16_t)(r->header[2] << 8 | r->header[3]);
}

size_t
fcgi_record_length(const struct fcgi_record *r)
{
	return (size_t)r->header[4] << 8 | r->header[5];
}

enum fcgi_part
fcgi_record_next(struct fcgi_record *r, const unsigned char **p,
    const unsigned char *end, const unsigned char **content, size_t *n)
{
	const bool head = r->header_len < sizeof(r->header);
	const size_t left = head  ? sizeof(r->header) - r->header_len
	    : r->content_left > 0 ? r->content_left
				  : r->padding_left;

	if (left == 0) {
		r->header_len = 0;
		return FCGI_PART_END;
	}
	if ((*n = MIN(left, (size_t)(end - *p))) == 0)
		return FCGI_PART_NONE;
	*content = *p;
	*p += *n;
	if (!head && r->content_left > 0) {
		const size_t at = fcgi_record_length(r) - r->content_left;

		if (at < sizeof(r->body))
			memcpy(r->body + at, *content,
			    MIN(*n, sizeof(r->body) - at));
		r->content_left -= *n;
		return FCGI_PART_CONTENT;
	}
	if (!head) {
		r->padding_left -= *n;
		return fcgi_record_next(r, p, end, content, n);
	}
	memcpy(r->header + r->header_len, *content, *n);
	r->header_len += *n;
	if (*n < left)
		return FCGI_PART_NONE;
	r->content_left = fcgi_record_length(r);
	r->padding_left = r->header[6];
	return FCGI_PART_HEADER;
}

static enum fcgi_event
broken_input(struct fcgi *f, const char *why)
{
	f->state = STATE_BROKEN;
	f->why = why;
	return FCGI_EV_ERROR;
}

void
fcgi_put_header(unsigned char out[8], unsigned type, uint16_t id, size_t length,
    size_t padding)
{
	out[0] = FCGI_VERSION_1;
	out[1] = (unsigned char)type;
	out[2] = (unsigned char)(id >> 8);
	out[3] = (unsigned char)id;
	out[4] = (unsigned char)(length >> 8);
	out[5] = (unsigned char)length;
	out[6] = (unsigned char)padding;
	out[7] = 0;
}

static void
put_end_request(unsigned char *out, uint16_t id, uint32_t app_status,
    unsigned protocol_status)
{
	fcgi_put_header(out, FCGI_END_REQUEST, id, 8, 0);
	out[8] = (unsigned char)(app_status >> 24);
	out[9] = (unsigned char)(app_status >> 16);
	out[10] = (unsigned char)(app_status >> 8);
	out[11] = (unsigned char)app_status;
	out[12] = (unsigned char)protocol_status;
	memset(out + 13, 0, 3);
}

static enum fcgi_event
reply_with(struct fcgi *f, const unsigned char *record, size_t len)
{
	if (buf_add(&f->reply, record, len) != RC_OK)
		return broken_input(f, "replies are not taken");
	return FCGI_EV_REPLY;
}

/* Reads one length of a name-value pair (section 3.4): one byte, or four. */
static bool
pair_length(const unsigned char **p, size_t *left, size_t *out)
{
	const unsigned char *q = *p;
	size_t n = 1;

	if (*left < 1)
		return false;
	if (q[0] & 0x80)
		n = 4;
	if (*left < n)
		return false;
	*out = q[0];
	if (n == 4)
		*out = (size_t)(q[0] & 0x7f) << 24 | (size_t)q[1] << 16 |
		    (size_t)q[2] << 8 | q[3];
	*p += n;
	*left -= n;
	return true;
}

/* Reads a name-value pair; false if it is longer than the input. */
static bool
pair_next(const unsigned char **p, size_t *left, const unsigned char **name,
    size_t *name_len, size_t *value_len)
{
	if (!pair_length(p, left, name_len) || !pair_length(p, left, value_len))
		return false;
	if (*name_len > *left || *value_len > *left - *name_len)
		return false;
	*name = *p;
	*p += *name_len + *value_len;
	*left -= *name_len + *value_len;
	return true;
}

/*
 * Raw pairs in text -> params.  A pair's lengths take at least two bytes, and
 * so do the NULs after its strings.  So strings are moved towards the front
 * and never reach a pair that was not read yet.
 */
static enum fcgi_event
decode_params(struct fcgi *f)
{
	const unsigned char *p = (const unsigned char *)f->text.data, *name;
	size_t left = f->text.len, name_len, value_len;
	const size_t room = MIN(left / 2, LIMIT_PARAM_COUNT);
	char *to = f->text.data;
	struct param *param;

	assert(f->params == NULL);
	f->params = malloc((room + 1) * sizeof(*f->params));
	if (f->params == NULL)
		return broken_input(f, "no memory");
	while (left > 0) {
		if (!pair_next(&p, &left, &name, &name_len, &value_len))
			return broken_input(
			    f, "a parameter is longer than its data");
		if (f->nparams == room)
			return broken_input(f, "too many parameters");
		if (memchr(name, '\0', name_len + value_len) != NULL)
			f->has_nul = true;
		param = &f->params[f->nparams++];
		memmove(to, name, name_len);
		param->name = to;
		to[name_len] = '\0';
		to += name_len + 1;
		memmove(to, name + name_len, value_len);
		param->value = to;
		to[value_len] = '\0';
		to += value_len + 1;
	}
	param = realloc(f->params, (f->nparams + 1) * sizeof(*param));
	if (param != NULL)
		f->params = param;
	f->state = STATE_STDIN;
	return FCGI_EV_HEAD;
}

/* FCGI_GET_VALUES (section 4.1): names that are not known are left out, and no
 * web server asks for those of the specification. */
static enum fcgi_event
answer_values(struct fcgi *f)
{
	unsigned char out[8];

	fcgi_put_header(out, FCGI_GET_VALUES_RESULT, 0, 0, 0);
	return reply_with(f, out, sizeof(out));
}

/* FCGI_UNKNOWN_TYPE (section 4.2). */
static enum fcgi_event
answer_unknown_type(struct fcgi *f)
{
	unsigned char out[16] = { 0 };

	fcgi_put_header(out, FCGI_UNKNOWN_TYPE, 0, 8, 0);
	out[8] = (unsigned char)fcgi_record_type(&f->in);
	return reply_with(f, out, sizeof(out));
}

/* FCGI_BEGIN_REQUEST (section 5.1). */
static enum fcgi_event
begin_request(struct fcgi *f)
{
	const unsigned char *body = f->in.body;
	unsigned char out[16];
	unsigned refused = FCGI_REQUEST_COMPLETE;

	if (f->id != 0)
		refused = FCGI_CANT_MPX_CONN;
	else if (body[0] != 0 || body[1] != FCGI_RESPONDER)
		refused = FCGI_UNKNOWN_ROLE;
	if (refused != FCGI_REQUEST_COMPLETE) {
		if (f->id == 0 && (body[2] & FCGI_KEEP_CONN) == 0)
			f->closing = true;
		put_end_request(out, fcgi_record_id(&f->in), 0, refused);
		return reply_with(f, out, sizeof(out));
	}
	f->id = fcgi_record_id(&f->in);
	f->keep_conn = (body[2] & FCGI_KEEP_CONN) != 0;
	f->state = STATE_PARAMS;
	return FCGI_EV_MORE;
}

/* The header is complete: checks whether the record may come now. */
static enum fcgi_event
begin_record(struct fcgi *f)
{
	unsigned type = fcgi_record_type(&f->in);
	uint16_t id = fcgi_record_id(&f->in);

	if (f->in.header[0] != FCGI_VERSION_1)
		return broken_input(f, "not FastCGI 1");
	if (id == FCGI_NULL_REQUEST_ID)
		return FCGI_EV_MORE;
	if (type == FCGI_BEGIN_REQUEST) {
		if (f->in.content_left != sizeof(FCGI_BeginRequestBody))
			return broken_input(
			    f, "FCGI_BEGIN_REQUEST of a wrong size");
		if (id == f->id)
			return broken_input(f, "a request begins twice");
		return FCGI_EV_MORE;
	}
	if (id != f->id) /* refused, aborted or never begun */
		return FCGI_EV_MORE;
	switch (type) {
	case FCGI_PARAMS:
		if (f->state != STATE_PARAMS)
			return broken_input(f, "FCGI_PARAMS after their end");
		return FCGI_EV_MORE;
	case FCGI_STDIN:
		if (f->state != STATE_STDIN)
			return broken_input(
			    f, "FCGI_STDIN before the parameters");
		return FCGI_EV_MORE;
	case FCGI_ABORT_REQUEST:
	case FCGI_DATA:
		return FCGI_EV_MORE;
	default:
		return broken_input(f, "a record that no web server sends");
	}
}

static enum fcgi_event
record_content(struct fcgi *f, const unsigned char *p, size_t n)
{
	enum rc rc;

	if (f->id == 0 || fcgi_record_id(&f->in) != f->id)
		return FCGI_EV_MORE;
	if (fcgi_record_type(&f->in) == FCGI_STDIN) {
		f->body = p;
		f->body_len = n;
		return FCGI_EV_BODY;
	}
	if (fcgi_record_type(&f->in) != FCGI_PARAMS)
		return FCGI_EV_MORE;
	if ((rc = buf_add(&f->text, p, n)) != RC_OK)
		return broken_input(f,
		    rc == RC_LIMIT ? "the parameters are too long"
				   : "no memory");
	return FCGI_EV_MORE;
}

/* Content and padding are complete: handles the whole record. */
static enum fcgi_event
end_record(struct fcgi *f)
{
	unsigned type = fcgi_record_type(&f->in);
	uint16_t id = fcgi_record_id(&f->in);

	if (id == FCGI_NULL_REQUEST_ID)
		return type == FCGI_GET_VALUES ? answer_values(f)
					       : answer_unknown_type(f);
	if (type == FCGI_BEGIN_REQUEST)
		return begin_request(f);
	if (id != f->id)
		return FCGI_EV_MORE;
	if (type == FCGI_PARAMS && fcgi_record_length(&f->in) == 0)
		return decode_params(f);
	if (type == FCGI_STDIN && fcgi_record_length(&f->in) == 0) {
		f->state = STATE_DONE;
		return FCGI_EV_END;
	}
	if (type == FCGI_ABORT_REQUEST) {
		f->state = STATE_DONE;
		return FCGI_EV_ABORT;
	}
	return FCGI_EV_MORE;
}

enum fcgi_event
fcgi_feed(struct fcgi *f, const void *data, size_t len, size_t *used)
{
	const unsigned char *p = data, *end = p + len, *bytes;
	enum fcgi_event event = FCGI_EV_MORE;
	enum fcgi_part part;
	size_t n;

	*used = 0;
	if (f->state == STATE_BROKEN)
		return FCGI_EV_ERROR;
	assert(f->state != STATE_DONE);
	do {
		part = fcgi_record_next(&f->in, &p, end, &bytes, &n);
		if (part == FCGI_PART_HEADER)
			event = begin_record(f);
		else if (part == FCGI_PART_CONTENT)
			event = record_content(f, bytes, n);
		else if (part == FCGI_PART_END)
			event = end_record(f);
	} while (event == FCGI_EV_MORE && part != FCGI_PART_NONE);
	*used = len - (size_t)(end - p);
	return event;
}

void
fcgi_init(struct fcgi *f)
{
	memset(f, 0, sizeof(*f));
	f->state = STATE_IDLE;
	buf_init(&f->text, LIMIT_PARAMS);
	buf_init(&f->reply, REPLY_MAX);
}

void
fcgi_free(struct fcgi *f)
{
	free(f->params);
	f->params = NULL;
	f->nparams = 0;
	buf_free(&f->text);
	buf_free(&f->reply);
}

void
fcgi_next(struct fcgi *f)
{
	free(f->params);
	f->params = NULL;
	f->nparams = 0;
	f->has_nul = false;
	f->keep_conn = false;
	f->id = 0;
	if (f->state != STATE_BROKEN)
		f->state = STATE_IDLE;
	if (f->text.cap > TEXT_KEEP)
		buf_free(&f->text);
	buf_clear(&f->text);
}

bool
fcgi_idle(const struct fcgi *f)
{
	return f->state == STATE_IDLE && f->in.header_len == 0;
}

size_t
fcgi_stdout_header(uint16_t id, size_t n, unsigned char out[8])
{
	size_t padding = -n & 7;

	assert(n <= FCGI_MAX_LENGTH);
	fcgi_put_header(out, FCGI_STDOUT, id, n, padding);
	return padding;
}

void
fcgi_end(uint16_t id, uint32_t app_status, unsigned char out[FCGI_END_SIZE])
{
	fcgi_put_header(out, FCGI_STDOUT, id, 0, 0);
	put_end_request(out + 8, id, app_status, FCGI_REQUEST_COMPLETE);
}
