/*
 * The handler's side of a key store, without SQL.  Code here does not know what
 * a token is: the views decide.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "handler_api.h"

struct handler_api {
	struct db *db;
	char why[256];
};

enum rc
handler_api_open(struct handler_api **out, const char *database,
    int64_t patience, char *err, size_t errsize)
{
	struct schema_options mo;
	struct handler_api *api;
	enum rc rc;

	*out = NULL;
	if ((api = calloc(1, sizeof(*api))) == NULL) {
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
	rc = schema_open(&api->db, &mo, err, errsize);
	if (rc != RC_OK) {
		free(api);
		return rc;
	}
	db_set_quiet(api->db, true);
	*out = api;
	return RC_OK;
}

void
handler_api_close(struct handler_api *api)
{
	if (api == NULL)
		return;
	db_close(api->db);
	free(api);
}

const char *
handler_api_why(const struct handler_api *api)
{
	return api->why;
}

/* Commits if rc is RC_OK; if a view refused the change, it is already rolled
 * back. */
static enum rc
handler_api_finish(struct handler_api *api, enum rc rc)
{
	const char *doubt = "";

	api->why[0] = '\0';
	if (rc == RC_OK) {
		rc = db_commit(api->db);
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
	    api->why, sizeof(api->why), "%s%s", db_message(api->db), doubt);
	db_rollback(api->db);
	return rc;
}

/* Runs in a transaction.  On failure it has ended that, or handler_api_finish()
 * does. */
static enum rc
add_effects(struct handler_api *api, const char *token,
    const struct handler_api_effect *effects, size_t n)
{
	struct db_stmt *s;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		s = db_stmt(api->db, QUERY_SAY_EMIT);
		db_bindf(s, "ssb", token, effects[i].topic, effects[i].payload,
		    effects[i].len);
		rc = db_step_done(s);
	}
	return rc;
}

enum rc
handler_api_emit(struct handler_api *api, const char *token,
    const struct handler_api_effect *effect)
{
	enum rc rc;

	if ((rc = db_begin(api->db)) == RC_OK)
		rc = add_effects(api, token, effect, 1);
	return handler_api_finish(api, rc);
}

enum rc
handler_api_checkpoint(struct handler_api *api, const char *token,
    const char *point, const struct handler_api_effect *effects,
    size_t neffects)
{
	struct db_stmt *s;
	enum rc rc;

	if ((rc = db_begin(api->db)) == RC_OK) {
		s = db_stmt(api->db, QUERY_SAY_CHECKPOINT);
		db_bindf(s, "ss", token, point);
		rc = db_step_done(s);
	}
	if (rc == RC_OK)
		rc = add_effects(api, token, effects, neffects);
	return handler_api_finish(api, rc);
}

enum rc
handler_api_respond(struct handler_api *api, const char *token, int status,
    const char *headers, const void *body, size_t len,
    const struct handler_api_effect *effects, size_t neffects)
{
	struct db_stmt *s;
	enum rc rc;

	if ((rc = db_begin(api->db)) == RC_OK) {
		s = db_stmt(api->db, QUERY_SAY_RESPOND);
		db_bindf(s, "sdsb", token, status, headers, body, len);
		rc = db_step_done(s);
	}
	if (rc == RC_OK)
		rc = add_effects(api, token, effects, neffects);
	return handler_api_finish(api, rc);
}
