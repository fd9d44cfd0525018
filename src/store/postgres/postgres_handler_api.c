/*
 * The handler's side of the store on PostgreSQL, by the functions that its SQL
 * would call, with the rights of the handler's own role.
 *
 * A connection that is lost in COMMIT is not asked for what became of it: the
 * role has no right to once_session.  The caller is told that the change may
 * have been recorded.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "postgres_impl.h"

/* How much longer than the server waits for a lock this process waits for the
 * server (ms). */
#define GRACE 1000

struct handler_api {
	struct handler_api_base base;
	struct pg_target *target;
	struct pg *pg;
	int64_t patience; /* ms */
	char why[512];
};

static void
api_close(struct handler_api *api)
{
	pg_close(api->pg);
	pg_target_free(api->target);
	free(api);
}

static const char *
api_why(const struct handler_api *api)
{
	return api->why;
}

/* Sends what is to be written; returns the number of statements. */
static size_t
api_send(struct pg *pg, const struct handler_api_write *w)
{
	const struct handler_api_effect *e = w->effects;

	if (w->point != NULL)
		pg_send(pg, PG_QUERY_SAY_CHECKPOINT, "ss", w->token, w->point);
	if (w->responds)
		pg_send(pg, PG_QUERY_SAY_RESPOND, "sdsb", w->token, w->status,
		    w->headers, w->body, w->len);
	for (size_t i = 0; i < w->neffects; i++)
		pg_send(pg, PG_QUERY_SAY_EMIT, "ssb", w->token, e[i].topic,
		    e[i].payload, e[i].len);
	return (w->point != NULL) + w->responds + w->neffects;
}

/* Why a write failed. */
static const char *
failure_text(const struct pg *pg, enum rc rc)
{
	if (strcmp(pg_sqlstate(pg), "22021") == 0)
		return "text that is not UTF-8, which PostgreSQL does not "
		       "store";
	return rc == RC_BUSY ? "database is locked" : pg_message(pg);
}

static enum rc
api_write(struct handler_api *api, const struct handler_api_write *w)
{
	struct pg *pg = api->pg;
	const char *doubt = "";
	size_t n;
	enum rc rc = RC_OK;

	api->why[0] = '\0';
	pg_set_deadline(pg, clock_mono() + api->patience + GRACE);
	pg_begin(pg);
	n = api_send(pg, w);
	for (; n > 0 && rc == RC_OK; n--)
		rc = pg_result(pg);
	if (rc == RC_OK) {
		rc = pg_commit(pg);
		if (rc == RC_OK)
			return RC_OK;
		if (pg_failure(pg) == PG_LOST) {
			doubt = "; it may have been recorded";
			rc = RC_IO;
		}
	}
	snprintf(
	    api->why, sizeof(api->why), "%s%s", failure_text(pg, rc), doubt);
	/* The effects are the last statements. */
	if (n < w->neffects)
		handler_api_name_effect(api->why, sizeof(api->why),
		    &w->effects[w->neffects - 1 - n]);
	pg_rollback(pg);
	return rc;
}

static const struct handler_api_ops ops = {
	.write = api_write,
	.why = api_why,
	.close = api_close,
};

static enum rc
api_connect(
    struct handler_api *api, const char *database, char *err, size_t errsize)
{
	enum rc rc;

	rc = pg_target_parse(
	    &api->target, database, api->patience + GRACE, err, errsize);
	if (rc != RC_OK)
		return rc;
	rc = pg_open(
	    &api->pg, api->target, clock_mono() + api->patience + GRACE);
	if (rc == RC_OK) {
		pg_set_quiet(api->pg, true);
		rc = pg_set_session(api->pg, api->patience, GRACE, NULL);
	}
	if (rc != RC_OK)
		snprintf(err, errsize, "database %s: %s",
		    pg_target_name(api->target),
		    api->pg != NULL ? pg_message(api->pg) : rc_text(rc));
	return rc;
}

enum rc
postgres_handler_api_open(struct handler_api **out, const char *database,
    int64_t patience, char *err, size_t errsize)
{
	struct handler_api *api = calloc(1, sizeof(*api));
	enum rc rc;

	*out = NULL;
	if (api == NULL) {
		snprintf(err, errsize, "%s", rc_text(RC_NOMEM));
		return RC_NOMEM;
	}
	api->base.ops = &ops;
	api->patience = patience < INT32_MAX / 2 ? patience : INT32_MAX / 2;
	if ((rc = api_connect(api, database, err, errsize)) != RC_OK) {
		api_close(api);
		return rc;
	}
	*out = api;
	return RC_OK;
}
