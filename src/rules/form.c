/*
 * The fields of a form, read as its bytes come.
 *
 * Here is what both kinds share, and the urlencoded one.
 *
 * This file does not know which fields matter.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "limit.h"
#include "media.h"
#include "form.h"

enum form_kind
form_kind_of(const char *content_type)
{
	const size_t n = content_type != NULL ? strlen(content_type) : 0;

	if (n == 0)
		return FORM_NONE;
	if (media_is(content_type, n, "multipart/form-data"))
		return FORM_MULTIPART;
	return media_is(content_type, n, "application/x-www-form-urlencoded")
	    ? FORM_URLENCODED
	    : FORM_NONE;
}

enum form_event
form_over(struct form *f, enum form_event event)
{
	f->over = event;
	f->p = f->end; /* the rest is of no use */
	return event;
}

void
form_init(struct form *f, enum form_kind kind, const char *content_type)
{
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	buf_init(&f->name, LIMIT_FORM_NAME);
	buf_init(&f->raw, LIMIT_FORM_NAME);
	buf_init(&f->file_name, LIMIT_FORM_HEAD);
	buf_init(&f->type, LIMIT_FORM_HEAD);
	buf_init(&f->head, LIMIT_FORM_HEAD);
	f->state = STATE_START;
	if (kind == FORM_NONE)
		(void)form_over(f, FORM_BAD);
	else if (kind == FORM_MULTIPART)
		form_multipart_init(f, content_type);
}

void
form_free(struct form *f)
{
	buf_free(&f->name);
	buf_free(&f->raw);
	buf_free(&f->file_name);
	buf_free(&f->type);
	buf_free(&f->head);
}

void
form_feed(struct form *f, const void *bytes, size_t n)
{
	assert(!f->finished && f->p == f->end);
	f->p = bytes;
	f->end = f->p + n;
}

void
form_finish(struct form *f)
{
	assert(f->p == f->end);
	f->finished = true;
}

bool
form_has_name(const struct form *f, const char *name)
{
	return f->is_named && f->name.len == strlen(name) &&
	    memcmp(f->name.data, name, f->name.len) == 0;
}

size_t
form_decode(char *s, size_t n)
{
	char *to = s;
	int high, low;
	size_t i;

	for (i = 0; i < n; i++) {
		if (s[i] == '%' && n - i > 2 &&
		    (high = ascii_hex(s[i + 1])) >= 0 &&
		    (low = ascii_hex(s[i + 2])) >= 0) {
			*to++ = (char)(high << 4 | low);
			i += 2;
		} else {
			*to++ = s[i] == '+' ? ' ' : s[i];
		}
	}
	return (size_t)(to - s);
}

void
form_begin_field(struct form *f)
{
	buf_clear(&f->name);
	buf_clear(&f->raw);
	buf_clear(&f->file_name);
	buf_clear(&f->type);
	f->has_file_name = false;
	f->is_named = false;
}

enum form_event
form_give_data(struct form *f, const char *end)
{
	f->data = f->p;
	f->len = (size_t)(end - f->p);
	f->p = end;
	return FORM_DATA;
}

/* --- urlencoded ------------------------------------------------------- */

/* Reads a name up to '=', '&' or the end.  A name that is too long has no
 * name, and its rest is data. */
static enum form_event
read_name(struct form *f)
{
	const char *s = f->p;
	size_t n;

	while (s < f->end && *s != '=' && *s != '&')
		s++;
	n = (size_t)(s - f->p);
	if (n >= LIMIT_FORM_NAME - f->raw.len) {
		f->state = STATE_VALUE;
		return FORM_FIELD;
	}
	buf_add(&f->raw, f->p, n);
	f->p = s;
	if (s == f->end && !f->finished)
		return FORM_NEED;
	if (buf_add(&f->name, f->raw.data, f->raw.len) != RC_OK)
		return form_over(f, FORM_NO_MEMORY);
	buf_truncate(&f->name, form_decode(f->name.data, f->name.len));
	f->is_named = true;
	if (s < f->end && *s == '=') {
		buf_addc(&f->raw, '=');
		f->p++;
	}
	if (f->raw.rc != RC_OK)
		return form_over(f, FORM_NO_MEMORY);
	f->state = STATE_VALUE;
	return FORM_FIELD;
}

static enum form_event
form_read_value(struct form *f)
{
	const char *s;

	if (f->p < f->end) {
		s = memchr(f->p, '&', (size_t)(f->end - f->p));
		if (s == NULL)
			s = f->end;
		if (s > f->p)
			return form_give_data(f, s);
	} else if (!f->finished) {
		return FORM_NEED;
	}
	f->state = STATE_SEPARATOR;
	return FORM_FIELD_END;
}

static enum form_event
next_urlencoded(struct form *f)
{
	switch (f->state) {
	case STATE_START:
	case STATE_SEPARATOR:
		if (f->p == f->end)
			return f->finished ? form_over(f, FORM_END) : FORM_NEED;
		if (f->state == STATE_SEPARATOR) {
			assert(*f->p == '&');
			f->p++;
		}
		form_begin_field(f);
		f->state = STATE_NAME;
		return read_name(f);
	case STATE_NAME:
		return read_name(f);
	case STATE_VALUE:
		return form_read_value(f);
	default:
		return FORM_END;
	}
}

enum form_event
form_next(struct form *f)
{
	if (f->over != FORM_NEED)
		return form_over(f, f->over);
	return f->kind == FORM_MULTIPART ? form_multipart_next(f)
					 : next_urlencoded(f);
}
