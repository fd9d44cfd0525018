/*
 * SQLite: the columns of a row.
 */
#include "config.h"

#include <string.h>

#include "db_impl.h"

/* Reads the column for that letter. */
static enum rc
column_at(struct db_stmt *s, int i, char letter, struct row_column *c)
{
	memset(c, 0, sizeof(*c));
	c->is = sqlite3_column_type(s->stmt, i) != SQLITE_NULL;
	if (row_letter_is_number(letter) || letter == 'w') {
		c->number = sqlite3_column_int64(s->stmt, i);
		return RC_OK;
	}
	if (letter == 'v' || letter == '-' || !c->is)
		return RC_OK;
	if (row_letter_is_text(letter)) {
		c->data = sqlite3_column_text(s->stmt, i);
		if (c->data == NULL)
			return RC_NOMEM;
	} else {
		c->data = sqlite3_column_blob(s->stmt, i);
	}
	c->n = (size_t)sqlite3_column_bytes(s->stmt, i);
	return RC_OK;
}

static enum rc
known_letter(struct db_stmt *s, enum rc rc)
{
	return rc == RC_INVALID
	    ? db_misused(s, "an unknown letter for a column")
	    : rc;
}

/* --- rows as structs ------------------------------------------------------ */

static const char *
column_name(const void *s, int i)
{
	return sqlite3_column_name(((const struct db_stmt *)s)->stmt, i);
}

/* The first of those columns; -1: the statement does not have them.  The names
 * are compared at the first call. */
static int
columns_of(struct db_stmt *s, const struct row_member *m, size_t n)
{
	const int nknown = sizeof(s->known) / sizeof(s->known[0]);
	int first;

	for (int i = 0; i < nknown; i++)
		if (s->known[i].members == m)
			return s->known[i].first;
	first = row_first(m, n, sqlite3_column_count(s->stmt), column_name, s);
	for (int i = 0; i < nknown && first != -1; i++)
		if (s->known[i].members == NULL) {
			s->known[i].members = m;
			s->known[i].first = first;
			break;
		}
	return first;
}

enum rc
db_members(
    struct db_stmt *s, const struct row_member *members, size_t n, void *out)
{
	const int first = columns_of(s, members, n);
	struct row_column c;
	enum rc rc = RC_OK;

	if (first == -1)
		return db_misused(s, "other columns than its reader has");
	for (const struct row_member *m = members;
	     m < members + n && rc == RC_OK; m++) {
		rc = column_at(s, first + (int)(m - members), m->letter, &c);
		if (rc == RC_OK)
			rc = row_put(&c, m, (char *)out + m->offset);
	}
	return known_letter(s, rc);
}

/* --- rows by a format ----------------------------------------------------- */

enum rc
db_vrowf(struct db_stmt *s, const char *format, va_list *ap)
{
	struct row_column c;
	enum rc rc = RC_OK;

	if (strlen(format) != (size_t)sqlite3_column_count(s->stmt))
		return db_misused(s, "a letter for each column");
	for (int i = 0; format[i] != '\0' && rc == RC_OK; i++)
		if ((rc = column_at(s, i, format[i], &c)) == RC_OK)
			rc = row_put_next(&c, format[i], ap);
	return known_letter(s, rc);
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
