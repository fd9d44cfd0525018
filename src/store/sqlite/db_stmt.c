/*
 * SQLite: statements.
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
bound(struct db_stmt *s, int code)
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
		bound(s, sqlite3_bind_int64(s->stmt, i, p.number));
		break;
	case ROW_TEXT:
		bound(s,
		    sqlite3_bind_text64(
			s->stmt, i, p.data, p.n, SQLITE_STATIC, SQLITE_UTF8));
		break;
	case ROW_BYTES:
		bound(s,
		    sqlite3_bind_blob64(
			s->stmt, i, p.data, p.n, SQLITE_STATIC));
		break;
	case ROW_UUID:
		bound(s,
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
