/*
 * The handler's side of a key store, without SQL.  Code here does not know what
 * a token is: the views decide.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "handler_api.h"
#include "schema.h"

/* Commits if rc is RC_OK; if a view refused the change, it is already rolled
 * back. */
static enum rc
handler_finish(struct db *db, enum rc rc, char *why, size_t size)
{
	const char *doubt = "";

	if (rc == RC_OK) {
		rc = db_commit(db);
		if (rc == RC_OK)
			return RC_OK;
		/* A change that could not be synced may be in the database all
		 * the same. */
		if (rc != RC_BUSY && rc != RC_FULL) {
			doubt = "; it may have been recorded";
			rc = RC_IO;
		}
	}
	snprintf(why, size, "%s%s", db_message(db), doubt);
	db_rollback(db);
	return rc;
}

static enum rc
handler_write(
    struct db *db, const struct handler_api_write *w, char *why, size_t size)
{
	const struct handler_api_effect *e = NULL;
	struct db_stmt *s;
	enum rc rc;

	rc = db_begin(db);
	if (rc == RC_OK && w->point != NULL) {
		s = db_stmt(db, QUERY_HANDLER_CHECKPOINT);
		db_bindf(s, "ss", w->token, w->point);
		rc = db_step_done(s);
	}
	if (rc == RC_OK && w->responds) {
		s = db_stmt(db, QUERY_HANDLER_RESPOND);
		db_bindf(s, "sdsb", w->token, w->status, w->headers, w->body,
		    w->len);
		rc = db_step_done(s);
	}
	for (size_t i = 0; i < w->neffects && rc == RC_OK; i++) {
		e = &w->effects[i];
		s = db_stmt(db, QUERY_HANDLER_EMIT);
		db_bindf(s, "ssb", w->token, e->topic, e->payload, e->len);
		rc = db_step_done(s);
	}
	rc = handler_finish(db, rc, why, size);
	if (rc != RC_OK && e != NULL)
		handler_api_name_effect(why, size, e);
	return rc;
}

enum rc
sqlite_handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size)
{
	const struct schema_options o = {
		.file = database,
		.full = true,
		.views = true,
		.busy_timeout = patience,
	};
	struct db *db;
	enum rc rc = schema_open(&db, &o, why, size);

	if (rc != RC_OK)
		return rc;
	db_set_quiet(db, true);
	rc = handler_write(db, w, why, size);
	db_close(db);
	return rc;
}
