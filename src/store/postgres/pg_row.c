/*
 * PostgreSQL: the columns of a row, in the binary format of the protocol.
 */
#include "config.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "uuid.h"
#include "pg_impl.h"

/* Types of columns, by the numbers of the catalog pg_type, which are part of
 * the protocol. */
enum {
	TYPE_BOOL = 16,
	TYPE_BYTEA = 17,
	TYPE_INT8 = 20,
	TYPE_INT2 = 21,
	TYPE_INT4 = 23,
	TYPE_TEXT = 25,
	TYPE_VARCHAR = 1043,
	TYPE_UUID = 2950
};

/* Which letters read columns of a type. */
static const struct {
	Oid type;
	const char *letters;
} readers[] = {
	{ TYPE_BOOL, "?v-" },
	{ TYPE_INT8, "imd?v-" },
	{ TYPE_INT4, "imd?v-" },
	{ TYPE_INT2, "imd?v-" },
	{ TYPE_TEXT, "sfpbaev-" },
	{ TYPE_VARCHAR, "sfpbaev-" },
	{ TYPE_BYTEA, "sfpbaexwv-" },
	{ TYPE_UUID, "uv-" },
};

static bool
letter_fits(const struct pg *pg, int i, char letter)
{
	const Oid type = PQftype(pg->result, i);

	for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++)
		if (readers[r].type == type)
			return strchr(readers[r].letters, letter) != NULL;
	return letter == 'v' || letter == '-';
}

static const char *
value_at(const struct pg *pg, int i, size_t *n)
{
	*n = (size_t)PQgetlength(pg->result, pg->row, i);
	return PQgetisnull(pg->result, pg->row, i)
	    ? NULL
	    : PQgetvalue(pg->result, pg->row, i);
}

/* An integer of 1, 2, 4 or 8 bytes, the highest first; NULL is 0. */
static int64_t
number_at(const struct pg *pg, int i)
{
	const unsigned char *p;
	uint64_t number;
	size_t n;

	p = (const unsigned char *)value_at(pg, i, &n);
	if (p == NULL || n == 0)
		return 0;
	number = p[0] >= 0x80 ? UINT64_MAX : 0;
	for (size_t k = 0; k < n; k++)
		number = number << 8 | p[k];
	return (int64_t)number;
}

static enum rc
number_between(
    const struct pg *pg, int i, int64_t min, int64_t max, int64_t *out)
{
	*out = number_at(pg, i);
	return *out >= min && *out <= max ? RC_OK : RC_CORRUPT;
}

static enum rc
count_at(const struct pg *pg, int i, int *out)
{
	int64_t number;
	enum rc rc = number_between(pg, i, 0, INT_MAX - 1, &number);

	*out = rc == RC_OK ? (int)number : 0;
	return rc;
}

/* The text in the row; RC_CORRUPT if a NUL is in it. */
static enum rc
text_at(const struct pg *pg, int i, const char **out)
{
	size_t n;

	/* libpq adds a NUL to each value. */
	*out = value_at(pg, i, &n);
	if (*out == NULL || strlen(*out) == n)
		return RC_OK;
	*out = NULL;
	return RC_CORRUPT;
}

static enum rc
text_copy(const struct pg *pg, int i, char **out)
{
	const char *text;
	enum rc rc;

	*out = NULL;
	rc = text_at(pg, i, &text);
	if (rc != RC_OK || text == NULL)
		return rc;
	*out = strdup(text);
	return *out != NULL ? RC_OK : RC_NOMEM;
}

static enum rc
text_field(const struct pg *pg, int i, char *out, size_t size)
{
	const char *text;
	size_t n;
	enum rc rc;

	*out = '\0';
	rc = text_at(pg, i, &text);
	if (rc != RC_OK || text == NULL)
		return rc;
	n = strlen(text);
	if (n >= size)
		return RC_CORRUPT;
	memcpy(out, text, n + 1);
	return RC_OK;
}

static enum rc
uuid_at(const struct pg *pg, int i, char *out, size_t size)
{
	const char *data;
	size_t n;

	*out = '\0';
	data = value_at(pg, i, &n);
	if (data == NULL)
		return RC_OK;
	if (n != 16 || size <= UUID_LEN)
		return RC_CORRUPT;
	uuid_text((const unsigned char *)data, out);
	return RC_OK;
}

static void
bytes_at(const struct pg *pg, int i, const void **out, size_t *n)
{
	*out = value_at(pg, i, n);
}

static enum rc
column_letter(struct pg *pg, int i, char letter, va_list *ap)
{
	const void **bytes;
	char *field;
	size_t n;

	if (!letter_fits(pg, i, letter))
		return pg_misused(pg, "a letter that its column does not fit");
	switch (letter) {
	case 'i':
		*va_arg(*ap, int64_t *) = number_at(pg, i);
		return RC_OK;
	case 'm':
		return number_between(
		    pg, i, 0, ROW_TIME_MAX, va_arg(*ap, int64_t *));
	case 'd':
		return count_at(pg, i, va_arg(*ap, int *));
	case '?':
		*va_arg(*ap, bool *) = number_at(pg, i) != 0;
		return RC_OK;
	case 'v':
		*va_arg(*ap, bool *) = value_at(pg, i, &n) != NULL;
		return RC_OK;
	case 's':
		return text_copy(pg, i, va_arg(*ap, char **));
	case 'f':
		field = va_arg(*ap, char *);
		return text_field(pg, i, field, va_arg(*ap, size_t));
	case 'u':
		field = va_arg(*ap, char *);
		return uuid_at(pg, i, field, va_arg(*ap, size_t));
	case 'p':
		return text_at(pg, i, va_arg(*ap, const char **));
	case 'b':
		bytes = va_arg(*ap, const void **);
		bytes_at(pg, i, bytes, va_arg(*ap, size_t *));
		return RC_OK;
	default:
		return letter == '-'
		    ? RC_OK
		    : pg_misused(pg, "an unknown letter for a column");
	}
}

/* --- rows by a format ----------------------------------------------------- */

enum rc
pg_next(struct pg *pg)
{
	if (pg->failure != PG_NONE)
		return pg->rc;
	if (pg->result == NULL || pg->row + 1 >= PQntuples(pg->result))
		return RC_NOTFOUND;
	pg->row++;
	return RC_OK;
}

enum rc
pg_vrow(struct pg *pg, const char *format, va_list *ap)
{
	enum rc rc = RC_OK;

	if (strlen(format) != (size_t)PQnfields(pg->result))
		return pg_misused(pg, "a letter for each column");
	for (int i = 0; format[i] != '\0' && rc == RC_OK; i++)
		rc = column_letter(pg, i, format[i], ap);
	return rc;
}

static enum rc
next_row(struct pg *pg, const char *format, va_list *ap)
{
	enum rc rc = pg_next(pg);

	return rc == RC_OK ? pg_vrow(pg, format, ap) : rc;
}

enum rc
pg_row(struct pg *pg, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	va_start(ap, format);
	rc = next_row(pg, format, &ap);
	va_end(ap);
	return rc;
}

enum rc
pg_one(struct pg *pg, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	rc = pg_result(pg);
	if (rc != RC_OK)
		return rc;
	if (pg_rows(pg) > 1)
		return RC_CORRUPT;
	va_start(ap, format);
	rc = next_row(pg, format, &ap);
	va_end(ap);
	return rc;
}

/* --- rows as structs ------------------------------------------------------ */

/* The first of those columns; -1: the statement does not have them. */
static int
first_column(const struct pg *pg, const struct row_member *m, size_t n)
{
	const int count = PQnfields(pg->result);
	int first;
	size_t i;

	for (first = 0; first + (int)n <= count; first++) {
		for (i = 0; i < n; i++)
			if (strcmp(PQfname(pg->result, first + (int)i),
				m[i].name) != 0)
				break;
		if (i == n)
			return first;
	}
	return -1;
}

/* A bytea of exactly that size. */
static enum rc
array_at(const struct pg *pg, int i, void *out, size_t size)
{
	const void *data;
	size_t n;

	bytes_at(pg, i, &data, &n);
	if (data == NULL || n != size)
		return RC_CORRUPT;
	memcpy(out, data, n);
	return RC_OK;
}

static enum rc
buf_at(const struct pg *pg, int i, struct buf *out)
{
	const void *data;
	size_t n;

	bytes_at(pg, i, &data, &n);
	buf_init(out, n);
	return buf_add(out, data, n);
}

static enum rc
word_at(const struct pg *pg, int i, const struct row_member *m, int *out)
{
	const char *word;
	enum rc rc;

	assert(m->size == sizeof(*out)); /* the size of an enum */
	rc = text_at(pg, i, &word);
	if (rc != RC_OK)
		return rc;
	return word != NULL && m->parse(word, out) ? RC_OK : RC_CORRUPT;
}

static enum rc
member_at(struct pg *pg, int i, const struct row_member *m, void *out)
{
	struct row_bytes *bytes = out;
	struct row_value *value = out;

	if (!letter_fits(pg, i, m->letter))
		return pg_misused(pg, "a letter that its column does not fit");
	switch (m->letter) {
	case 'i':
		*(int64_t *)out = number_at(pg, i);
		return RC_OK;
	case 'm':
		return number_between(pg, i, 0, ROW_TIME_MAX, out);
	case 'd':
		return count_at(pg, i, out);
	case '?':
		*(bool *)out = number_at(pg, i) != 0;
		return RC_OK;
	case 's':
		return text_copy(pg, i, out);
	case 'p':
		return text_at(pg, i, out);
	case 'f':
		return text_field(pg, i, out, m->size);
	case 'u':
		return uuid_at(pg, i, out, m->size);
	case 'b':
		bytes_at(pg, i, &bytes->data, &bytes->n);
		return RC_OK;
	case 'x':
		return array_at(pg, i, out, m->size);
	case 'w':
		value->n = sizeof(value->bytes);
		return array_at(pg, i, value->bytes, value->n);
	case 'e':
		return word_at(pg, i, m, out);
	case 'a':
		return buf_at(pg, i, out);
	default:
		return pg_misused(pg, "an unknown letter for a member");
	}
}

enum rc
pg_members(struct pg *pg, const struct row_member *members, size_t n, void *out)
{
	const struct row_member *m;
	enum rc rc = RC_OK;
	int first;

	if (pg->result == NULL || pg->row < 0)
		return pg_misused(pg, "members without a row");
	first = first_column(pg, members, n);
	if (first == -1)
		return pg_misused(pg, "other columns than its reader has");
	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		m = &members[i];
		rc = member_at(pg, first + (int)i, m, (char *)out + m->offset);
	}
	return rc;
}
