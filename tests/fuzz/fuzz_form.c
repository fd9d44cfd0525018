/*
 * Any bytes as a form.  The first line is the CONTENT_TYPE, the rest the body.
 *
 *  -	The fields are the same, however the body is cut into pieces,
 *  -	the data of all fields together is no longer than the body,
 *  -	an urlencoded form, put together again, is the body itself.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "form.h"
#include "limit.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* What the events of a form are, as bytes, and what they say of the body. */
struct told {
	struct buf events, body;
	size_t data;
	bool good;
};

static void
tell_field(const struct form *f, struct told *told)
{
	assert(f->name.len <= LIMIT_FORM_NAME);
	assert(f->raw.len <= LIMIT_FORM_NAME);
	assert(f->file_name.len <= LIMIT_FORM_HEAD);
	assert(f->type.len <= LIMIT_FORM_HEAD);
	if (told->events.len > 0)
		assert(buf_addc(&told->body, '&') == RC_OK);
	assert(buf_add(&told->body, f->raw.data, f->raw.len) == RC_OK);
	assert(buf_addf(&told->events, "\n%d %d %zu %zu %zu ", f->is_named,
		   f->has_file_name, f->name.len, f->file_name.len,
		   f->type.len) == RC_OK);
	assert(buf_add(&told->events, f->name.data, f->name.len) == RC_OK);
	/* Where a name is too long, how much of it is in raw depends on the
	 * pieces. */
	assert(buf_add(&told->events, f->raw.data, f->raw.len) == RC_OK);
}

/* True: more bytes are needed. */
static bool
tell(struct form *f, struct told *told)
{
	for (;;) {
		switch (form_next(f)) {
		case FORM_NEED:
			return true;
		case FORM_FIELD:
			tell_field(f, told);
			break;
		case FORM_DATA:
			assert(f->len > 0);
			told->data += f->len;
			assert(buf_add(&told->body, f->data, f->len) == RC_OK);
			assert(
			    buf_add(&told->events, f->data, f->len) == RC_OK);
			break;
		case FORM_FIELD_END:
			assert(buf_addc(&told->events, ';') == RC_OK);
			break;
		case FORM_END:
			told->good = true;
			return false;
		case FORM_BAD:
			assert(form_next(f) == FORM_BAD);
			return false;
		case FORM_NO_MEMORY:
			abort();
		}
	}
}

static void
read_form(const char *type, const uint8_t *body, size_t len, size_t piece,
    struct told *told)
{
	struct form f;
	bool more = true;
	size_t at, n;

	memset(told, 0, sizeof(*told));
	buf_init(&told->events, 100 * len + 1000);
	buf_init(&told->body, 2 * len + 1000);
	form_init(&f, form_kind_of(type), type);
	for (at = 0; more && at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		form_feed(&f, body + at, n);
		more = tell(&f, told);
	}
	if (more) {
		form_finish(&f);
		assert(!tell(&f, told));
	}
	assert(told->data <= len);
	form_free(&f);
}

static void
free_told(struct told *told)
{
	buf_free(&told->events);
	buf_free(&told->body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	static const size_t pieces[] = { 1, 2, 7 };
	struct told whole, cut;
	size_t n, len, i;
	char *type;

	if (end == NULL)
		return 0;
	n = (size_t)(end - data);
	/* strndup() may look behind the n bytes in a checked build. */
	if ((type = malloc(n + 1)) == NULL)
		return 0;
	memcpy(type, data, n);
	type[n] = '\0';
	len = size - n - 1;
	read_form(type, end + 1, len, SIZE_MAX, &whole);
	if (form_kind_of(type) == FORM_URLENCODED) {
		assert(whole.good);
		assert(whole.body.len == len);
		assert(memcmp(whole.body.data, end + 1, len) == 0);
	}
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		read_form(type, end + 1, len, pieces[i], &cut);
		assert(cut.good == whole.good);
		assert(cut.events.len == whole.events.len);
		assert(memcmp(cut.events.data, whole.events.data,
			   whole.events.len) == 0);
		free_told(&cut);
	}
	free_told(&whole);
	free(type);
	return 0;
}
