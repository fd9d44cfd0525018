/*
 * SQLite: the columns of a row.
 */
#include "config.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "uuid.h"
#include "db_impl.h"

static enum rc
row_read_number(
    struct db_stmt *s, int i, int64_t min, int64_t max, int64_t *out)
{
	*out = sqlite3_column_int64(s->stmt, i);
	return *out >= min && *out <= max ? RC_OK : RC_CORRUPT;
}

/* The text in the row; RC_CORRUPT if a NUL is in it. */
static enum rc
read_text(struct db_stmt *s, int i, const char **out)
{
	*out = (const char *)sqlite3_column_text(s->stmt, i);
	if (*out == NULL)
		return sqlite3_column_type(s->stmt, i) == SQLITE_NULL
		    ? RC_OK
		    : RC_NOMEM;
	/* C code would read it as a shorter text. */
	if (strlen(*out) == (size_t)sqlite3_column_bytes(s->stmt, i))
		return RC_OK;
	*out = NULL;
	return RC_CORRUPT;
}

static enum rc
read_copy(struct db_stmt *s, int i, char **out)
{
	const char *text;
	enum rc rc;

	*out = NULL;
	rc = read_text(s, i, &text);
	if (rc != RC_OK || text == NULL)
		return rc;
	*out = strdup(text);
	return *out != NULL ? RC_OK : RC_NOMEM;
}

static enum rc
read_field(struct db_stmt *s, int i, char *out, size_t size)
{
	const char *text;
	size_t n;
	enum rc rc;

	*out = '\0';
	rc = read_text(s, i, &text);
	if (rc != RC_OK || text == NULL)
		return rc;
	n = strlen(text);
	if (n >= size)
		return RC_CORRUPT;
	memcpy(out, text, n + 1);
	return RC_OK;
}

static void
read_blob(struct db_stmt *s, int i, const void **out, size_t *n)
{
	*out = sqlite3_column_blob(s->stmt, i);
	*n = (size_t)sqlite3_column_bytes(s->stmt, i);
}

static enum rc
read_uuid(struct db_stmt *s, int i, char *out, size_t size)
{
	const void *data;
	size_t n;

	*out = '\0';
	read_blob(s, i, &data, &n);
	if (sqlite3_column_type(s->stmt, i) == SQLITE_NULL)
		return RC_OK;
	if (n != 16 || size <= UUID_LEN)
		return RC_CORRUPT;
	uuid_text(data, out);
	return RC_OK;
}

static enum rc
read_count(struct db_stmt *s, int i, int *out)
{
	int64_t number;
	enum rc rc = row_read_number(s, i, 0, INT_MAX - 1, &number);

	*out = rc == RC_OK ? (int)number : 0;
	return rc;
}

static enum rc
read_letter(struct db_stmt *s, int i, char letter, va_list *ap)
{
	const void **blob;
	char *field;
	bool *flag;

	switch (letter) {
	case '-':
		return RC_OK;
	case 'i':
		return row_read_number(
		    s, i, INT64_MIN, INT64_MAX, va_arg(*ap, int64_t *));
	case 'm':
		return row_read_number(
		    s, i, 0, ROW_TIME_MAX, va_arg(*ap, int64_t *));
	case 'd':
		return read_count(s, i, va_arg(*ap, int *));
	case '?':
		*va_arg(*ap, bool *) = sqlite3_column_int64(s->stmt, i) != 0;
		return RC_OK;
	case 'v':
		flag = va_arg(*ap, bool *);
		*flag = sqlite3_column_type(s->stmt, i) != SQLITE_NULL;
		return RC_OK;
	case 's':
		return read_copy(s, i, va_arg(*ap, char **));
	case 'f':
		field = va_arg(*ap, char *);
		return read_field(s, i, field, va_arg(*ap, size_t));
	case 'u':
		field = va_arg(*ap, char *);
		return read_uuid(s, i, field, va_arg(*ap, size_t));
	case 'p':
		return read_text(s, i, va_arg(*ap, const char **));
	case 'b':
		blob = va_arg(*ap, const void **);
		read_blob(s, i, blob, va_arg(*ap, size_t *));
		return RC_OK;
	default:
		return db_misused(s, "an unknown letter for a column");
	}
}

/* --- rows as structs ------------------------------------------------------ */

/* The first of those columns; -1: the statement does not have them. */
static int
find_columns(struct db_stmt *s, const struct row_member *m, size_t n)
{
	const int count = sqlite3_column_count(s->stmt);
	const char *name;
	int first;
	size_t i;

	for (first = 0; first + (int)n <= count; first++) {
		for (i = 0; i < n; i++) {
			name = sqlite3_column_name(s->stmt, first + (int)i);
			if (name == NULL || strcmp(name, m[i].name) != 0)
				break;
		}
		if (i == n)
			return first;
	}
	return -1;
}

/* The same; the names are compared at the first call. */
static int
columns_of(struct db_stmt *s, const struct row_member *m, size_t n)
{
	const int nknown = sizeof(s->known) / sizeof(s->known[0]);
	int first;

	for (int i = 0; i < nknown; i++)
		if (s->known[i].members == m)
			return s->known[i].first;
	first = find_columns(s, m, n);
	for (int i = 0; i < nknown && first != -1; i++)
		if (s->known[i].members == NULL) {
			s->known[i].members = m;
			s->known[i].first = first;
			break;
		}
	return first;
}

/* A blob of exactly that size. */
static enum rc
read_array(struct db_stmt *s, int i, void *out, size_t size)
{
	const void *data;
	size_t n;

	read_blob(s, i, &data, &n);
	if (n != size)
		return RC_CORRUPT;
	memcpy(out, data, n);
	return RC_OK;
}

static enum rc
read_bytes(struct db_stmt *s, int i, struct buf *out)
{
	const void *data;
	size_t n;

	read_blob(s, i, &data, &n);
	buf_init(out, n);
	return buf_add(out, data, n);
}

static enum rc
read_word(struct db_stmt *s, int i, const struct row_member *m, int *out)
{
	const char *word;
	enum rc rc;

	assert(m->size == sizeof(*out)); /* the size of an enum */
	rc = read_text(s, i, &word);
	if (rc != RC_OK)
		return rc;
	return word != NULL && m->parse(word, out) ? RC_OK : RC_CORRUPT;
}

static enum rc
read_member(struct db_stmt *s, int i, const struct row_member *m, void *out)
{
	struct row_bytes *bytes = out;
	struct row_value *value = out;

	switch (m->letter) {
	case 'i':
		return row_read_number(s, i, INT64_MIN, INT64_MAX, out);
	case 'm':
		return row_read_number(s, i, 0, ROW_TIME_MAX, out);
	case 'd':
		return read_count(s, i, out);
	case '?':
		*(bool *)out = sqlite3_column_int64(s->stmt, i) != 0;
		return RC_OK;
	case 's':
		return read_copy(s, i, out);
	case 'p':
		return read_text(s, i, out);
	case 'f':
		return read_field(s, i, out, m->size);
	case 'u':
		return read_uuid(s, i, out, m->size);
	case 'b':
		read_blob(s, i, &bytes->data, &bytes->n);
		return RC_OK;
	case 'x':
		return read_array(s, i, out, m->size);
	case 'w':
		value->n = 0;
		return row_read_number(
		    s, i, INT64_MIN, INT64_MAX, &value->number);
	case 'e':
		return read_word(s, i, m, out);
	case 'a':
		return read_bytes(s, i, out);
	default:
		return db_misused(s, "an unknown letter for a member");
	}
}

enum rc
db_members(
    struct db_stmt *s, const struct row_member *members, size_t n, void *out)
{
	const int first = columns_of(s, members, n);
	const struct row_member *m;
	enum rc rc = RC_OK;

	if (first == -1)
		return db_misused(s, "other columns than its reader has");
	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		m = &members[i];
		rc = read_member(s, first + (int)i, m, (char *)out + m->offset);
	}
	return rc;
}

/* --- rows by a format ----------------------------------------------------- */

enum rc
db_vrowf(struct db_stmt *s, const char *format, va_list *ap)
{
	enum rc rc = RC_OK;
	int i;

	if (strlen(format) != (size_t)sqlite3_column_count(s->stmt))
		return db_misused(s, "a letter for each column");
	for (i = 0; format[i] != '\0' && rc == RC_OK; i++)
		rc = read_letter(s, i, format[i], ap);
	return rc;
}

enum rc
db_rowf(struct db_stmt *s, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	va_start(ap, format);
	rc = db_vrowf(s, format, &ap);
	va_end(ap);
	return rc;
}

enum rc
db_onef(struct db_stmt *s, const char *format, ...)
{
	va_list ap;
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	if (strpbrk(format, "pb") != NULL)
		rc = db_misused(s, "a letter that points into the row");
	va_start(ap, format);
	if (rc == RC_OK)
		rc = db_vrowf(s, format, &ap);
	va_end(ap);
	db_reset(s);
	return rc;
}
