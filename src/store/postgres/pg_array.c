/*
 * PostgreSQL: arrays in the binary format of the protocol, which is that of the
 * server's array_send().
 */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "uuid.h"
#include "pg_array.h"

/* Of a value, at most. */
#define MOST ((size_t)1 << 30)

/* The number of dimensions, whether there are NULLs, the elements' type, and of
 * the dimension the number of elements and the index of the first one. */
#define HEAD    (5 * 4)
#define HEAD_AT (3 * 4) /* the number of elements */

/* Types of elements, by their numbers in the catalog pg_type. */
static int64_t
array_type(char letter)
{
	switch (letter) {
	case 'i':
	case 'z':
	case 'd':
		return 20; /* bigint */
	case '?':
		return 16; /* boolean */
	case 'u':
		return 2950; /* uuid */
	case 'w':
		return 25; /* text */
	default:
		return 17; /* bytea */
	}
}

static enum rc
array_number(struct buf *b, int64_t number, size_t n)
{
	unsigned char bytes[8];

	pg_put_number(bytes, number, n);
	return buf_add(b, bytes, n);
}

static enum rc
array_null(struct buf *b)
{
	return array_number(b, -1, 4);
}

static enum rc
array_bytes(struct buf *b, const void *data, size_t n)
{
	enum rc rc = n < MOST ? array_number(b, (int64_t)n, 4) : RC_LIMIT;

	return rc == RC_OK && n > 0 ? buf_add(b, data, n) : rc;
}

/* An integer of n bytes. */
static enum rc
array_integer(struct buf *b, int64_t number, size_t n)
{
	enum rc rc = array_number(b, (int64_t)n, 4);

	return rc == RC_OK ? array_number(b, number, n) : rc;
}

static enum rc
array_uuid(struct buf *b, const char *text)
{
	unsigned char bytes[16];

	if (text == NULL)
		return array_null(b);
	if (!uuid_parse(text, bytes))
		memset(bytes, 0, sizeof(bytes));
	return array_bytes(b, bytes, sizeof(bytes));
}

static enum rc
array_text(struct buf *b, const char *text, bool empty_is_null)
{
	if (text == NULL || (empty_is_null && text[0] == '\0'))
		return array_null(b);
	return array_bytes(b, text, strlen(text));
}

static enum rc
array_element(struct buf *b, char letter, va_list *ap)
{
	const void *data;
	int64_t number;
	size_t n;

	switch (letter) {
	case 'i':
		return array_integer(b, va_arg(*ap, int64_t), 8);
	case 'z':
		number = va_arg(*ap, int64_t);
		return number != 0 ? array_integer(b, number, 8)
				   : array_null(b);
	case 'd':
		return array_integer(b, va_arg(*ap, int), 8);
	case '?':
		return array_integer(b, va_arg(*ap, int) != 0, 1);
	case 'u':
		return array_uuid(b, va_arg(*ap, const char *));
	case 's':
		return array_text(b, va_arg(*ap, const char *), false);
	case 't':
	case 'w':
		return array_text(b, va_arg(*ap, const char *), true);
	case 'b':
	case 'o':
		data = va_arg(*ap, const void *);
		n = va_arg(*ap, size_t);
		return letter == 'o' && n == 0 ? array_null(b)
					       : array_bytes(b, data, n);
	default:
		return RC_INVALID;
	}
}

static enum rc
array_begin(struct buf *b, char letter)
{
	unsigned char head[HEAD];

	pg_put_number(head, 1, 4);
	pg_put_number(head + 4, 1, 4);
	pg_put_number(head + 8, array_type(letter), 4);
	pg_put_number(head + HEAD_AT, 0, 4);
	pg_put_number(head + 16, 1, 4);
	if (b->data == NULL)
		buf_init(b, MOST);
	return buf_add(b, head, sizeof(head));
}

void
pg_arrays_add(struct pg_arrays *a, const char *format, ...)
{
	const int columns = (int)strlen(format);
	va_list ap;

	if (columns > PG_ARRAYS_MAX || (a->rows > 0 && columns != a->columns))
		a->rc = RC_INVALID;
	va_start(ap, format);
	for (int i = 0; i < columns && a->rc == RC_OK; i++) {
		if (a->rows == 0)
			a->rc = array_begin(&a->column[i], format[i]);
		if (a->rc == RC_OK)
			a->rc = array_element(&a->column[i], format[i], &ap);
		if (a->rc == RC_OK)
			pg_put_number(
			    a->column[i].data + HEAD_AT, a->rows + 1, 4);
	}
	va_end(ap);
	a->columns = columns;
	a->rows++;
}

void
pg_arrays_clear(struct pg_arrays *a)
{
	for (int i = 0; i < PG_ARRAYS_MAX; i++)
		if (a->column[i].data != NULL)
			buf_clear(&a->column[i]);
	a->rows = 0;
	a->rc = RC_OK;
}

void
pg_arrays_free(struct pg_arrays *a)
{
	for (int i = 0; i < PG_ARRAYS_MAX; i++)
		buf_free(&a->column[i]);
	memset(a, 0, sizeof(*a));
}
