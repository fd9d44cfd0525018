/*
 * The parts of a multipart/form-data body (RFC 7578; RFC 2046, section 5.1),
 * read as its bytes come.
 *
 * A delimiter is CRLF, "--" and the boundary.  It has no CR but its first byte,
 * so where a match ends early, only the byte that ended it can begin another
 * one.  The bytes that had matched then are data, and are taken from the
 * delimiter itself: nothing of the body is kept.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "limit.h"
#include "media.h"
#include "response.h"
#include "form.h"

_Static_assert(
    sizeof(((struct form *)NULL)->delimiter) == 4 + LIMIT_FORM_BOUNDARY + 1,
    "room for a boundary");

void
form_multipart_init(struct form *f, const char *content_type)
{
	struct buf boundary;
	enum rc rc;

	buf_init(&boundary, LIMIT_FORM_BOUNDARY);
	rc = media_parameter(
	    content_type, strlen(content_type), "boundary", &boundary);
	if (rc == RC_NOMEM) {
		(void)form_over(f, FORM_NO_MEMORY);
	} else if (rc != RC_OK || boundary.len == 0 ||
	    strpbrk(boundary.data, "\r\n") != NULL) {
		(void)form_over(f, FORM_BAD);
	} else {
		memcpy(f->delimiter, "\r\n--", 4);
		memcpy(f->delimiter + 4, boundary.data, boundary.len);
		f->delimiter_len = 4 + boundary.len;
		/* The body begins behind a line end, as it were. */
		f->matched = f->assumed = 2;
		f->state = STATE_PREAMBLE;
	}
	buf_free(&boundary);
}

/* --- multipart: a part's head ------------------------------------------ */

/* The file name, with that of filename* (RFC 5987) behind a NUL: RFC 7578,
 * section 4.2, forbids it, and programs differ in which of both they take. */
static enum rc
read_file_name(struct form *f, const char *value, size_t len)
{
	struct buf extended;
	enum rc rc;

	rc = media_parameter(value, len, "filename", &f->file_name);
	f->has_file_name = rc == RC_OK;
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	buf_init(&extended, LIMIT_FORM_HEAD);
	rc = media_parameter(value, len, "filename*", &extended);
	if (rc == RC_OK) {
		f->has_file_name = true;
		buf_addc(&f->file_name, '\0');
		rc = buf_add(&f->file_name, extended.data, extended.len);
	}
	buf_free(&extended);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum form_event
read_disposition(struct form *f, const char *value, size_t len)
{
	enum rc rc;

	if (!media_is(value, len, "form-data"))
		return form_over(f, FORM_BAD);
	rc = media_parameter(value, len, "name", &f->name);
	f->is_named = rc == RC_OK;
	if (rc == RC_OK || rc == RC_NOTFOUND)
		rc = read_file_name(f, value, len);
	if (rc == RC_NOMEM)
		return form_over(f, FORM_NO_MEMORY);
	if (rc == RC_INVALID || rc == RC_LIMIT)
		return form_over(f, FORM_BAD);
	return FORM_FIELD;
}

/* Makes one line of a field and its continuation lines (RFC 5322, section
 * 2.2.3): blanks take the place of their CRLF. */
static void
unfold(struct buf *head)
{
	char *p = head->data, *end = p + head->len;

	while (
	    (p = memchr(p, '\r', (size_t)(end - p))) != NULL && end - p > 2) {
		if (p[2] == ' ' || p[2] == '\t')
			memset(p, ' ', 2);
		p += 2;
	}
}

/* f->head has the lines, each with its CRLF. */
static enum form_event
multipart_read_head(struct form *f)
{
	struct response_text rest, line, name, value;
	bool disposed = false, typed = false;
	enum form_event event;

	form_begin_field(f);
	unfold(&f->head);
	rest = (struct response_text){ f->head.data, f->head.len };
	while (response_text_line(&rest, &line)) {
		if (!response_text_split(line, &name, &value))
			continue;
		if (response_text_is(name, "Content-Disposition")) {
			if (disposed)
				return form_over(f, FORM_BAD);
			disposed = true;
			event = read_disposition(f, value.p, value.n);
			if (event != FORM_FIELD)
				return event;
		}
		if (response_text_is(name, "Content-Type") && !typed) {
			typed = true;
			media_type(value.p, value.n, &f->type);
		}
	}
	if (!disposed)
		return form_over(f, FORM_BAD);
	/* RFC 7578, section 4.4: the default. */
	if (!typed)
		buf_adds(&f->type, "text/plain");
	if (f->type.rc != RC_OK)
		return form_over(f, FORM_NO_MEMORY);
	f->state = STATE_DATA;
	/* The CRLF that ends the head may be the delimiter's, if the part has
	 * no data. */
	f->matched = f->assumed = 2;
	return FORM_FIELD;
}

/* Gathers the head up to its empty line. */
static enum form_event
multipart_take_head(struct form *f)
{
	struct buf *head = &f->head;
	enum rc rc;
	char c;

	while (f->p < f->end) {
		c = *f->p++;
		if (c == '\n' &&
		    (head->len == 0 || head->data[head->len - 1] != '\r'))
			return form_over(f, FORM_BAD);
		if (c != '\n' && head->len > 0 &&
		    head->data[head->len - 1] == '\r')
			return form_over(f, FORM_BAD);
		if ((rc = buf_addc(head, c)) == RC_LIMIT)
			return form_over(f, FORM_BAD);
		if (rc != RC_OK)
			return form_over(f, FORM_NO_MEMORY);
		if (c != '\n')
			continue;
		if (head->len == 2 ||
		    (head->len >= 4 &&
			memcmp(head->data + head->len - 4, "\r\n", 2) == 0))
			return multipart_read_head(f);
	}
	return FORM_NEED;
}

/* --- multipart: delimiters --------------------------------------------- */

/*
 * Reads up to the end of a delimiter.  FORM_DATA: some data.  FORM_FIELD_END:
 * the delimiter is complete.  FORM_NEED: there are no more bytes.
 */
static enum form_event
scan_part(struct form *f)
{
	const char *s;

	while (f->p < f->end) {
		if (f->matched == 0) {
			s = memchr(f->p, '\r', (size_t)(f->end - f->p));
			if (s == NULL)
				return form_give_data(f, f->end);
			f->matched = 1;
			if (s > f->p) {
				(void)form_give_data(f, s);
				f->p++;
				return FORM_DATA;
			}
			f->p++;
			continue;
		}
		if (*f->p != f->delimiter[f->matched]) {
			f->data = f->delimiter + f->assumed;
			f->len = f->matched - f->assumed;
			f->matched = f->assumed = 0;
			if (f->len > 0)
				return FORM_DATA;
			continue;
		}
		f->p++;
		if (++f->matched == f->delimiter_len) {
			f->matched = f->assumed = 0;
			return FORM_FIELD_END;
		}
	}
	return FORM_NEED;
}

static enum form_event
next_part(struct form *f)
{
	const char c = *f->p;

	switch (f->state) {
	case STATE_DELIMITED:
		if (c == '-') {
			f->p++;
			f->state = STATE_DASH;
			return FORM_NEED;
		}
		f->state = STATE_PADDING;
		return FORM_NEED;
	case STATE_DASH:
		if (c != '-')
			break;
		f->p++;
		f->state = STATE_EPILOGUE;
		return FORM_NEED;
	case STATE_PADDING:
		if (c == '\r')
			f->state = STATE_LINE_END;
		else if (c != ' ' && c != '\t')
			break;
		f->p++;
		return FORM_NEED;
	case STATE_LINE_END:
		if (c != '\n')
			break;
		f->p++;
		f->state = STATE_HEAD;
		buf_clear(&f->head);
		return FORM_NEED;
	default:
		assert(!"a state between two parts");
	}
	return form_over(f, FORM_BAD);
}

enum form_event
form_multipart_next(struct form *f)
{
	enum form_event event = FORM_NEED;

	while (event == FORM_NEED && f->p < f->end) {
		switch (f->state) {
		case STATE_PREAMBLE:
			event = scan_part(f);
			if (event == FORM_FIELD_END)
				f->state = STATE_DELIMITED;
			if (event != FORM_NEED)
				event = FORM_NEED; /* its data is no part's */
			break;
		case STATE_HEAD:
			event = multipart_take_head(f);
			break;
		case STATE_DATA:
			event = scan_part(f);
			if (event == FORM_FIELD_END)
				f->state = STATE_DELIMITED;
			break;
		case STATE_EPILOGUE:
			f->p = f->end;
			break;
		default:
			event = next_part(f);
			break;
		}
	}
	if (event != FORM_NEED || !f->finished)
		return event;
	if (f->state != STATE_EPILOGUE)
		return form_over(f, FORM_BAD);
	return form_over(f, FORM_END);
}
