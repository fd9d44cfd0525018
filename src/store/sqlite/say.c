/*
 * The handler's side of a key store, without SQL.  Code here does not know what
 * a token is: the views decide.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "say.h"

struct say {
	struct db *db;
	char why[256];
};

enum rc
say_open(struct say **out, const char *database, int64_t patience, char *err,
    size_t errsize)
{
	struct schema_options mo;
	struct say *say;
	enum rc rc;

	*out = NULL;
	if ((say = calloc(1, sizeof(*say))) == NULL) {
		snprintf(err, errsize, "database %s: %s", database,
		    rc_text(RC_NOMEM));
		return RC_NOMEM;
	}
	memset(&mo, 0, sizeof(mo));
	mo.file = database;
	mo.create = false;
	mo.full = true;
	mo.views = true;
	mo.busy_timeout = patience;
	rc = schema_open(&say->db, &mo, err, errsize);
	if (rc != RC_OK) {
		free(say);
		return rc;
	}
	db_set_quiet(say->db, true);
	*out = say;
	return RC_OK;
}

void
say_close(struct say *say)
{
	if (say == NULL)
		return;
	db_close(say->db);
	free(say);
}

const char *
say_why(const struct say *say)
{
	return say->why;
}

/* Commits if rc is RC_OK; if a view refused the change, it is already rolled
 * back. */
static enum rc
say_finish(struct say *say, enum rc rc)
{
	const char *doubt = "";

	say->why[0] = '\0';
	if (rc == RC_OK) {
		rc = db_commit(say->db);
		if (rc == RC_OK)
			return RC_OK;
		/* A change that could not be synced may be in the database all
		 * the same. */
		if (rc != RC_BUSY && rc != RC_FULL) {
			doubt = "; it may have been recorded";
			rc = RC_IO;
		}
	}
	snprintf(
	    say->why, sizeof(say->why), "%s%s", db_message(say->db), doubt);
	db_rollback(say->db);
	return rc;
}

/* Runs in a transaction.  On failure it has ended that, or say_finish()
 * does. */
static enum rc
add_effects(struct say *say, const char *token,
    const struct say_effect *effects, size_t n)
{
	struct db_stmt *s;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		s = db_stmt(say->db, QUERY_SAY_EMIT);
		db_bindf(s, "ssb", token, effects[i].topic, effects[i].payload,
		    effects[i].len);
		rc = db_step_done(s);
	}
	return rc;
}

enum rc
say_emit(struct say *say, const char *token, const struct say_effect *effect)
{
	enum rc rc;

	if ((rc = db_begin(say->db)) == RC_OK)
		rc = add_effects(say, token, effect, 1);
	return say_finish(say, rc);
}

enum rc
say_checkpoint(struct say *say, const char *token, const char *point,
    const struct say_effect *effects, size_t neffects)
{
	struct db_stmt *s;
	enum rc rc;

	if ((rc = db_begin(say->db)) == RC_OK) {
		s = db_stmt(say->db, QUERY_SAY_CHECKPOINT);
		db_bindf(s, "ss", token, point);
		rc = db_step_done(s);
	}
	if (rc == RC_OK)
		rc = add_effects(say, token, effects, neffects);
	return say_finish(say, rc);
}

enum rc
say_respond(struct say *say, const char *token, int status, const char *headers,
    const void *body, size_t len, const struct say_effect *effects,
    size_t neffects)
{
	struct db_stmt *s;
	enum rc rc;

	if ((rc = db_begin(say->db)) == RC_OK) {
		s = db_stmt(say->db, QUERY_SAY_RESPOND);
		db_bindf(s, "sdsb", token, status, headers, body, len);
		rc = db_step_done(s);
	}
	if (rc == RC_OK)
		rc = add_effects(say, token, effects, neffects);
	return say_finish(say, rc);
}
