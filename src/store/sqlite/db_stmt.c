/*
 * SQLite: statements, and the columns of their rows.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "limit.h"
#include "db_impl.h"

struct db_stmt *
db_stmt(struct db *db, enum query q)
{
	struct db_stmt *s = &db->stmt[q];
	int code;

	s->error = RC_OK;
	if (s->stmt != NULL) {
		sqlite3_reset(s->stmt);
		sqlite3_clear_bindings(s->stmt);
		return s;
	}
	s->db = db;
	s->name = q;
	code = sqlite3_prepare_v3(db->handle, queries_text(q), -1,
	    SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
	if (code != SQLITE_OK)
		s->error = db_fail(db, code, queries_name(q));
	return s;
}

static void
check_bound(struct db_stmt *s, int code)
{
	if (code != SQLITE_OK && s->error == RC_OK)
		s->error = db_fail(s->db, code, queries_name(s->name));
}

enum rc
db_misused(struct db_stmt *s, const char *message)
{
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", db_file(s->db)),
	    LOG_S("doing", queries_name(s->name)), LOG_S("message", message));
#ifdef RECORD_CHECKS
	assert(!"a format is wrong");
#endif
	return RC_INVALID;
}

/* Binds one parameter.  Parameters are NULL beforehand. */
static void
bind_letter(struct db_stmt *s, int i, char letter, va_list *ap)
{
	struct row_parameter p;

	if (!row_parameter(&p, letter, ap)) {
		s->error = db_misused(s, "an unknown letter for a parameter");
		return;
	}
	switch (p.kind) {
	case ROW_NULL:
		break;
	case ROW_NUMBER:
	case ROW_BOOLEAN:
		check_bound(s, sqlite3_bind_int64(s->stmt, i, p.number));
		break;
	case ROW_TEXT:
		check_bound(s,
		    sqlite3_bind_text64(
			s->stmt, i, p.data, p.n, SQLITE_STATIC, SQLITE_UTF8));
		break;
	case ROW_BYTES:
		check_bound(s,
		    sqlite3_bind_blob64(
			s->stmt, i, p.data, p.n, SQLITE_STATIC));
		break;
	case ROW_UUID:
		check_bound(s,
		    sqlite3_bind_blob64(
			s->stmt, i, p.uuid, p.n, SQLITE_TRANSIENT));
		break;
	}
}

void
db_vbindf(struct db_stmt *s, const char *format, va_list *ap)
{
	int i;

	if (s->error != RC_OK)
		return;
	if (strlen(format) != (size_t)sqlite3_bind_parameter_count(s->stmt)) {
		s->error = db_misused(s, "a letter for each parameter");
		return;
	}
	for (i = 0; format[i] != '\0' && s->error == RC_OK; i++)
		bind_letter(s, i + 1, format[i], ap);
}

void
db_bindf(struct db_stmt *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	db_vbindf(s, format, &ap);
	va_end(ap);
}

static enum rc
step_failed(struct db_stmt *s, int code)
{
	enum rc rc = db_fail(s->db, code, queries_name(s->name));

	sqlite3_reset(s->stmt);
	return rc;
}

enum rc
db_step_row(struct db_stmt *s)
{
	int code;

	if (s->error != RC_OK)
		return s->error;
	code = sqlite3_step(s->stmt);
	if (code == SQLITE_ROW)
		return RC_OK;
	if (code != SQLITE_DONE)
		return step_failed(s, code);
	sqlite3_reset(s->stmt);
	return RC_NOTFOUND;
}

enum rc
db_step_done(struct db_stmt *s)
{
	int changed;

	return db_update(s, &changed);
}

enum rc
db_update(struct db_stmt *s, int *changed)
{
	int code;

	*changed = 0;
	if (s->error != RC_OK)
		return s->error;
	code = sqlite3_step(s->stmt);
	if (code == SQLITE_ROW) {
		sqlite3_reset(s->stmt);
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("database", db_file(s->db)),
		    LOG_S("doing", queries_name(s->name)),
		    LOG_S("message", "a row where none was expected"));
		return RC_CORRUPT;
	}
	if (code != SQLITE_DONE)
		return step_failed(s, code);
	*changed = sqlite3_changes(s->db->handle);
	sqlite3_reset(s->stmt);
	return RC_OK;
}

void
db_reset(struct db_stmt *s)
{
	if (s->stmt != NULL)
		sqlite3_reset(s->stmt);
}

/* --- the columns of a row ------------------------------------------------- */

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
