/*
 * The handler's side of a key store, without SQL.  Code here does not know what
 * a token is: the views decide.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler_api.h"
#include "schema.h"

struct handler_api {
	struct handler_api_base base;
	struct db *db;
	char why[256];
};

static void
api_close(struct handler_api *api)
{
	db_close(api->db);
	free(api);
}

static const char *
api_why(const struct handler_api *api)
{
	return api->why;
}

/* Commits if rc is RC_OK; if a view refused the change, it is already rolled
 * back. */
static enum rc
api_finish(struct handler_api *api, enum rc rc)
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

/* Runs in a transaction.  On failure it has ended that, or api_finish() does;
 * *failed is the effect. */
static enum rc
add_effects(struct handler_api *api, const char *token,
    const struct handler_api_effect *effects, size_t n,
    const struct handler_api_effect **failed)
{
	struct db_stmt *s;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		*failed = &effects[i];
		s = db_stmt(api->db, QUERY_SAY_EMIT);
		db_bindf(s, "ssb", token, effects[i].topic, effects[i].payload,
		    effects[i].len);
		rc = db_step_done(s);
	}
	return rc;
}

static enum rc
api_write(struct handler_api *api, const struct handler_api_write *w)
{
	const struct handler_api_effect *failed = NULL;
	struct db_stmt *s;
	enum rc rc;

	rc = db_begin(api->db);
	if (rc == RC_OK && w->point != NULL) {
		s = db_stmt(api->db, QUERY_SAY_CHECKPOINT);
		db_bindf(s, "ss", w->token, w->point);
		rc = db_step_done(s);
	}
	if (rc == RC_OK && w->responds) {
		s = db_stmt(api->db, QUERY_SAY_RESPOND);
		db_bindf(s, "sdsb", w->token, w->status, w->headers, w->body,
		    w->len);
		rc = db_step_done(s);
	}
	if (rc == RC_OK)
		rc = add_effects(
		    api, w->token, w->effects, w->neffects, &failed);
	rc = api_finish(api, rc);
	if (rc != RC_OK && failed != NULL)
		handler_api_name_effect(api->why, sizeof(api->why), failed);
	return rc;
}

static const struct handler_api_ops ops = {
	.write = api_write,
	.why = api_why,
	.close = api_close,
};

enum rc
sqlite_handler_api_open(struct handler_api **out, const char *database,
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
	api->base.ops = &ops;
	*out = api;
	return RC_OK;
}
