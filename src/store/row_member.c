/*
 * See row_member.h.
 */
#include "config.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "uuid.h"
#include "row_member.h"

/* --- columns -------------------------------------------------------------- */

bool
row_letter_is_number(char letter)
{
	return strchr("imd?", letter) != NULL;
}

bool
row_letter_is_text(char letter)
{
	return strchr("sfpe", letter) != NULL;
}

static enum rc
put_integer_at(
    const struct row_column *c, int64_t min, int64_t max, int64_t *out)
{
	*out = c->number;
	return *out >= min && *out <= max ? RC_OK : RC_CORRUPT;
}

static enum rc
put_count(const struct row_column *c, int *out)
{
	int64_t number;
	enum rc rc = put_integer_at(c, 0, INT_MAX - 1, &number);

	*out = rc == RC_OK ? (int)number : 0;
	return rc;
}

/* RC_CORRUPT if a NUL is in the text: C code would read it as a shorter one. */
static enum rc
put_text(const struct row_column *c, const char **out)
{
	*out = c->data;
	if (*out == NULL || strlen(*out) == c->n)
		return RC_OK;
	*out = NULL;
	return RC_CORRUPT;
}

static enum rc
put_copy(const struct row_column *c, char **out)
{
	const char *text;
	enum rc rc = put_text(c, &text);

	*out = NULL;
	if (rc != RC_OK || text == NULL)
		return rc;
	*out = strdup(text);
	return *out != NULL ? RC_OK : RC_NOMEM;
}

static enum rc
put_field(const struct row_column *c, char *out, size_t size)
{
	const char *text;
	enum rc rc = put_text(c, &text);

	*out = '\0';
	if (rc != RC_OK || text == NULL)
		return rc;
	if (c->n >= size)
		return RC_CORRUPT;
	memcpy(out, text, c->n + 1);
	return RC_OK;
}

static enum rc
put_uuid(const struct row_column *c, char *out, size_t size)
{
	*out = '\0';
	if (!c->is)
		return RC_OK;
	if (c->n != 16 || size <= UUID_LEN)
		return RC_CORRUPT;
	uuid_text(c->data, out);
	return RC_OK;
}

static enum rc
put_array(const struct row_column *c, void *out, size_t size)
{
	if (c->n != size)
		return RC_CORRUPT;
	memcpy(out, c->data, size);
	return RC_OK;
}

static enum rc
put_any(const struct row_column *c, struct row_value *out)
{
	out->n = c->n;
	out->number = c->number;
	return c->n == 0 && c->is
	    ? RC_OK
	    : put_array(c, out->bytes, sizeof(out->bytes));
}

static enum rc
put_word(const struct row_column *c, const struct row_member *m, int *out)
{
	const char *word;
	enum rc rc = put_text(c, &word);

	assert(m->size == sizeof(*out)); /* the size of an enum */
	if (rc != RC_OK)
		return rc;
	return word != NULL && m->parse(word, out) ? RC_OK : RC_CORRUPT;
}

enum rc
row_put(const struct row_column *c, const struct row_member *m, void *out)
{
	switch (m->letter) {
	case 'i':
		return put_integer_at(c, INT64_MIN, INT64_MAX, out);
	case 'm':
		return put_integer_at(c, 0, ROW_TIME_MAX, out);
	case 'd':
		return put_count(c, out);
	case '?':
		*(bool *)out = c->number != 0;
		return RC_OK;
	case 'v':
		*(bool *)out = c->is;
		return RC_OK;
	case 's':
		return put_copy(c, out);
	case 'p':
		return put_text(c, out);
	case 'f':
		return put_field(c, out, m->size);
	case 'u':
		return put_uuid(c, out, m->size);
	case 'b':
		*(struct row_bytes *)out = (struct row_bytes){ c->data, c->n };
		return RC_OK;
	case 'x':
		return put_array(c, out, m->size);
	case 'w':
		return put_any(c, out);
	case 'e':
		return put_word(c, m, out);
	case 'a':
		buf_init(out, c->n);
		return buf_add(out, c->data, c->n);
	default:
		return RC_INVALID;
	}
}

enum rc
row_put_next(const struct row_column *c, char letter, va_list *ap)
{
	struct row_member m = { .letter = letter };
	void *out;

	switch (letter) {
	case 'i':
	case 'm':
		return row_put(c, &m, va_arg(*ap, int64_t *));
	case 'd':
		return row_put(c, &m, va_arg(*ap, int *));
	case '?':
	case 'v':
		return row_put(c, &m, va_arg(*ap, bool *));
	case 's':
		return row_put(c, &m, va_arg(*ap, char **));
	case 'p':
		return row_put(c, &m, va_arg(*ap, const char **));
	case 'f':
	case 'u':
		out = va_arg(*ap, char *);
		m.size = va_arg(*ap, size_t);
		return row_put(c, &m, out);
	case 'b':
		*va_arg(*ap, const void **) = c->data;
		*va_arg(*ap, size_t *) = c->n;
		return RC_OK;
	default:
		return letter == '-' ? RC_OK : RC_INVALID;
	}
}

int
row_first(const struct row_member *m, size_t n, int count,
    const char *(*name)(const void *statement, int i), const void *statement)
{
	const char *found;
	size_t i;

	for (int first = 0; first + (int)n <= count; first++) {
		for (i = 0; i < n; i++) {
			found = name(statement, first + (int)i);
			if (found == NULL || strcmp(found, m[i].name) != 0)
				break;
		}
		if (i == n)
			return first;
	}
	return -1;
}

/* --- parameters ----------------------------------------------------------- */

static void
member_integer(struct row_parameter *p, enum row_kind kind, int64_t number)
{
	p->kind = kind;
	p->number = number;
}

static void
member_data(
    struct row_parameter *p, enum row_kind kind, const void *data, size_t n)
{
	p->kind = kind;
	p->data = data != NULL ? data : "";
	p->n = n;
}

static void
member_uuid(struct row_parameter *p, const char *text)
{
	if (text == NULL)
		return;
	memset(p->uuid, 0, sizeof(p->uuid));
	member_data(p, ROW_UUID, p->uuid,
	    uuid_parse(text, p->uuid) ? sizeof(p->uuid) : 0);
}

bool
row_parameter(struct row_parameter *p, char letter, va_list *ap)
{
	const struct row_value *value;
	const void *data;
	int64_t number;
	size_t n;

	p->kind = ROW_NULL;
	switch (letter) {
	case 'i':
	case 'z':
		number = va_arg(*ap, int64_t);
		if (letter == 'i' || number != 0)
			member_integer(p, ROW_NUMBER, number);
		return true;
	case 'd':
		member_integer(p, ROW_NUMBER, va_arg(*ap, int));
		return true;
	case '?':
		member_integer(p, ROW_BOOLEAN, va_arg(*ap, int) != 0);
		return true;
	case 's':
	case 't':
		data = va_arg(*ap, const char *);
		n = data != NULL ? strlen(data) : 0;
		if (data != NULL && (letter == 's' || n > 0))
			member_data(p, ROW_TEXT, data, n);
		return true;
	case 'b':
	case 'o':
		data = va_arg(*ap, const void *);
		n = va_arg(*ap, size_t);
		if (letter == 'b' || n > 0)
			member_data(p, ROW_BYTES, data, n);
		return true;
	case 'u':
		member_uuid(p, va_arg(*ap, const char *));
		return true;
	case 'w':
		value = va_arg(*ap, const struct row_value *);
		if (value->n > 0)
			member_data(p, ROW_BYTES, value->bytes, value->n);
		else
			member_integer(p, ROW_NUMBER, value->number);
		return true;
	default:
		return letter == 'n';
	}
}
