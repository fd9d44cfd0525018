/*
 * PostgreSQL: the results of statements, in the order of the statements.
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "pg_impl.h"

static const char *
statement_name(int query)
{
	return query < 0 ? "exec" : pg_query_name((enum pg_query)query);
}

/* Waits until PQgetResult() does not wait. */
static enum rc
await_result(struct pg *pg, const char *doing)
{
	while (PQisBusy(pg->conn)) {
		if (!pg_wait(pg->conn, POLLIN, pg->deadline))
			return pg_lost(pg, RC_TIMEOUT, doing,
			    "the server did not answer in time");
		if (!PQconsumeInput(pg->conn))
			return pg_lost(
			    pg, RC_IO, doing, PQerrorMessage(pg->conn));
	}
	return RC_OK;
}

static bool
is_good(const PGresult *result)
{
	switch (PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
	case PGRES_PIPELINE_SYNC:
		return true;
	default:
		return false;
	}
}

/* The verdict on a result of the pending kind. */
static enum rc
judge(struct pg *pg, const PGresult *result, const struct pg_pending *p)
{
	const ExecStatusType status = PQresultStatus(result);
	const bool sync = status == PGRES_PIPELINE_SYNC;

	if (is_good(result) && sync == (p->kind == PG_PENDING_SYNC))
		return RC_OK;
	/* The group has failed before. */
	if (status == PGRES_PIPELINE_ABORTED && pg->group != RC_OK)
		return pg->group;
	if (status == PGRES_FATAL_ERROR)
		return pg_refused(pg, result, statement_name(p->query));
	return pg_lost(pg, RC_IO, statement_name(p->query),
	    "the server answered what was not asked");
}

/* Takes the next of the pending results; its rows are the caller's to read. */
static enum rc
take_result(struct pg *pg, enum pg_pending_kind *kind)
{
	const struct pg_pending p = pg->pending[0];
	PGresult *result;
	enum rc rc;

	*kind = p.kind;
	rc = await_result(pg, statement_name(p.query));
	if (rc != RC_OK)
		return rc;
	result = PQgetResult(pg->conn);
	if (result == NULL)
		return pg_lost(pg, RC_IO, statement_name(p.query),
		    PQerrorMessage(pg->conn));
	rc = judge(pg, result, &p);
	pg->result = result;
	pg->row = -1;
	if (pg->failure == PG_LOST)
		return pg->rc;
	pg->npending--;
	memmove(pg->pending, pg->pending + 1,
	    pg->npending * sizeof(pg->pending[0]));
	if (p.kind == PG_PENDING_SYNC) {
		pg->groups--;
		pg->group = RC_OK;
		return RC_OK;
	}
	if (rc != RC_OK && p.kind == PG_PENDING_PREPARE)
		pg->prepared[p.query] = false;
	if (rc != RC_OK && pg->group == RC_OK)
		pg->group = rc;
	/* The end of this statement's results. */
	PQclear(PQgetResult(pg->conn));
	return rc;
}

static void
drop_result(struct pg *pg)
{
	PQclear(pg->result);
	pg->result = NULL;
}

enum rc
pg_result(struct pg *pg)
{
	enum pg_pending_kind kind;
	enum rc rc;

	drop_result(pg);
	while (pg->failure != PG_LOST && pg->npending > 0) {
		if (pg->groups == 0 && pg_sync(pg) != RC_OK)
			break;
		rc = take_result(pg, &kind);
		if (kind == PG_PENDING_RESULT && pg->failure != PG_LOST)
			return rc;
		drop_result(pg);
	}
	if (pg->failure == PG_LOST)
		return pg->rc;
	if (pg->local != RC_OK)
		return pg->local;
	return pg_misused(pg, "more results than statements");
}

enum rc
pg_clear(struct pg *pg)
{
	enum pg_pending_kind kind;

	drop_result(pg);
	(void)pg_end_group(pg);
	while (pg->failure != PG_LOST && pg->npending > 0) {
		(void)take_result(pg, &kind);
		drop_result(pg);
	}
	if (pg->failure == PG_LOST)
		return pg->rc;
	pg->failure = PG_NONE;
	pg->rc = pg->group = pg->local = RC_OK;
	pg->sqlstate[0] = '\0';
	return RC_OK;
}

int
pg_rows(const struct pg *pg)
{
	return PQntuples(pg->result);
}

int
pg_changed(const struct pg *pg)
{
	return (int)strtol(PQcmdTuples(pg->result), NULL, 10);
}

enum rc
pg_update(struct pg *pg, int *changed)
{
	enum rc rc = pg_result(pg);

	*changed = 0;
	if (rc != RC_OK)
		return rc;
	if (pg_rows(pg) > 0)
		return RC_CORRUPT;
	*changed = pg_changed(pg);
	return RC_OK;
}

enum rc
pg_done(struct pg *pg)
{
	int changed;

	return pg_update(pg, &changed);
}
