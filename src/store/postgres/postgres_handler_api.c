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
#include <string.h>

#include "clock.h"
#include "postgres_impl.h"

/* How much longer than the server waits for a lock this process waits for the
 * server (ms). */
#define GRACE 1000

/* Sends what is to be written; returns the number of statements. */
static size_t
handler_send(struct pg *pg, const struct handler_api_write *w)
{
	const struct handler_api_effect *e = w->effects;

	if (w->point != NULL)
		pg_send(
		    pg, PG_QUERY_HANDLER_CHECKPOINT, "ss", w->token, w->point);
	if (w->responds)
		pg_send(pg, PG_QUERY_HANDLER_RESPOND, "sdsb", w->token,
		    w->status, w->headers, w->body, w->len);
	for (size_t i = 0; i < w->neffects; i++)
		pg_send(pg, PG_QUERY_HANDLER_EMIT, "ssb", w->token, e[i].topic,
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
handler_write(
    struct pg *pg, const struct handler_api_write *w, char *why, size_t size)
{
	const char *doubt = "";
	size_t n;
	enum rc rc = RC_OK;

	pg_begin(pg);
	n = handler_send(pg, w);
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
	snprintf(why, size, "%s%s", failure_text(pg, rc), doubt);
	/* The effects are the last statements. */
	if (n < w->neffects)
		handler_api_name_effect(
		    why, size, &w->effects[w->neffects - 1 - n]);
	return rc;
}

/* Closing it rolls back. */
static enum rc
handler_over(struct pg_target *target, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size)
{
	struct pg *pg;
	enum rc rc = pg_open(&pg, target, clock_mono() + patience + GRACE);

	if (rc == RC_OK) {
		pg_set_quiet(pg, true);
		rc = pg_set_session(pg, patience, GRACE, NULL);
	}
	if (rc == RC_OK) {
		pg_set_deadline(pg, clock_mono() + patience + GRACE);
		rc = handler_write(pg, w, why, size);
	} else {
		snprintf(why, size, "database %s: %s", pg_target_name(target),
		    pg != NULL ? pg_message(pg) : rc_text(rc));
	}
	pg_close(pg);
	return rc;
}

enum rc
postgres_handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size)
{
	struct pg_target *target;
	enum rc rc;

	if (patience > INT32_MAX / 2)
		patience = INT32_MAX / 2;
	snprintf(why, size, "%s", rc_text(RC_NOMEM));
	rc = pg_target_parse(&target, database, patience + GRACE, why, size);
	if (rc != RC_OK)
		return rc;
	rc = handler_over(target, patience, w, why, size);
	pg_target_free(target);
	return rc;
}
