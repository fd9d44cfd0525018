/*
 * PostgreSQL: statements with their parameters, and their results, in the order
 * of the statements.
 */
#include "config.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "pg_impl.h"

#define PARAMETERS_MAX 48
#define BINARY         1 /* a format of the protocol */

struct parameters {
	int n;
	const char *value[PARAMETERS_MAX];
	int length[PARAMETERS_MAX], format[PARAMETERS_MAX];
	struct row_parameter from[PARAMETERS_MAX];
	unsigned char number[PARAMETERS_MAX][8];
};

/* Adds what libpq is to give; false: no memory. */
static bool
send_expect(struct pg *pg, enum pg_pending_kind kind, int query)
{
	const struct pg_pending next = { kind, query };
	struct pg_pending *more;
	size_t room;

	if (pg->npending == pg->room) {
		room = pg->room > 0 ? 2 * pg->room : 16;
		more = realloc(pg->pending, room * sizeof(*more));
		if (more == NULL)
			return false;
		pg->pending = more;
		pg->room = room;
	}
	pg->pending[pg->npending++] = next;
	return true;
}

/* Writes the number as n bytes, the highest first, as the protocol has it. */
static void
put_integer(unsigned char *p, int64_t number, size_t n)
{
	while (n-- > 0) {
		p[n] = (unsigned char)number;
		number = (int64_t)((uint64_t)number >> 8);
	}
}

/* False: it cannot be sent.  Text goes as bytes, because the text format of
 * bytea has escapes. */
static bool
add_parameter(struct parameters *p, char letter, va_list *ap)
{
	struct row_parameter *from = &p->from[p->n];
	unsigned char *number = p->number[p->n];

	if (!row_parameter(from, letter, ap))
		return false;
	switch (from->kind) {
	case ROW_NULL:
		from->data = NULL;
		from->n = 0;
		break;
	case ROW_NUMBER:
	case ROW_BOOLEAN:
		from->n = from->kind == ROW_NUMBER ? 8 : 1;
		put_integer(number, from->number, from->n);
		from->data = number;
		break;
	case ROW_UUID:
		from->n = sizeof(from->uuid);
		break;
	case ROW_TEXT:
	case ROW_BYTES:
		break;
	}
	if (from->n > (size_t)1 << 30) /* of a value, at most */
		return false;
	p->value[p->n] = from->data;
	p->length[p->n] = (int)from->n;
	p->format[p->n] = BINARY;
	return true;
}

static enum rc
send_prepared(struct pg *pg, enum pg_query q, enum pg_pending_kind kind,
    const struct parameters *p)
{
	const char *name = pg_query_name(q);

	if (!pg->prepared[q]) {
		if (!send_expect(pg, PG_PENDING_PREPARE, (int)q))
			return RC_NOMEM;
		if (!PQsendPrepare(pg->conn, name, pg_query_text(q), 0, NULL))
			goto failed;
		pg->prepared[q] = true;
	}
	if (!send_expect(pg, kind, (int)q))
		return RC_NOMEM;
	if (PQsendQueryPrepared(
		pg->conn, name, p->n, p->value, p->length, p->format, BINARY))
		return RC_OK;
failed:
	return pg_lost(pg, RC_IO, name, PQerrorMessage(pg->conn));
}

static void
send_statement(struct pg *pg, enum pg_query q, enum pg_pending_kind kind,
    const char *format, va_list *ap)
{
	struct parameters p;

	if (pg->failure == PG_LOST || pg->local != RC_OK)
		return;
	for (p.n = 0; format[p.n] != '\0'; p.n++)
		if (p.n == PARAMETERS_MAX ||
		    !add_parameter(&p, format[p.n], ap))
			break;
	if (format[p.n] != '\0')
		pg->local = pg_misused(pg, "a parameter that cannot be sent");
	else
		pg->local = send_prepared(pg, q, kind, &p);
	if (pg->local != RC_OK && pg->failure == PG_NONE) {
		pg->failure = PG_OTHER;
		pg->rc = pg->local;
	}
}

void
pg_vsend(struct pg *pg, enum pg_query q, const char *format, va_list *ap)
{
	send_statement(pg, q, PG_PENDING_RESULT, format, ap);
}

void
pg_send(struct pg *pg, enum pg_query q, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	pg_vsend(pg, q, format, &ap);
	va_end(ap);
}

void
pg_send_quietly(struct pg *pg, enum pg_query q, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	send_statement(pg, q, PG_PENDING_QUIET, format, &ap);
	va_end(ap);
}

/* Reads meanwhile: the server may wait for that before it reads on. */
static enum rc
send_flush(struct pg *pg)
{
	int more;

	while ((more = PQflush(pg->conn)) == 1) {
		if (!pg_wait(pg->conn, POLLIN | POLLOUT, pg->deadline))
			return pg_lost(pg, RC_TIMEOUT, "send",
			    "the server did not read in time");
		if (!PQconsumeInput(pg->conn)) {
			more = -1;
			break;
		}
	}
	return more == 0 ? RC_OK
			 : pg_lost(pg, RC_IO, "send", PQerrorMessage(pg->conn));
}

enum rc
pg_sync(struct pg *pg)
{
	if (pg->failure == PG_LOST)
		return pg->rc;
	if (!send_expect(pg, PG_PENDING_SYNC, -1))
		return pg_lost(pg, RC_NOMEM, "send", "no memory");
	if (!PQpipelineSync(pg->conn))
		return pg_lost(pg, RC_IO, "send", PQerrorMessage(pg->conn));
	pg->groups++;
	return send_flush(pg);
}

enum rc
pg_end_group(struct pg *pg)
{
	if (pg->npending == 0 ||
	    pg->pending[pg->npending - 1].kind == PG_PENDING_SYNC)
		return RC_OK;
	return pg_sync(pg);
}

enum rc
pg_exec(struct pg *pg, const char *sql)
{
	if (pg->failure == PG_LOST || pg->local != RC_OK)
		return pg->rc;
	if (!send_expect(pg, PG_PENDING_RESULT, -1))
		return pg_lost(pg, RC_NOMEM, "send", "no memory");
	if (!PQsendQueryParams(
		pg->conn, sql, 0, NULL, NULL, NULL, NULL, BINARY))
		return pg_lost(pg, RC_IO, "send", PQerrorMessage(pg->conn));
	return pg_result(pg);
}

/* --- results -------------------------------------------------------------- */

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
judge_result(struct pg *pg, const PGresult *result, const struct pg_pending *p)
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
statement_result(struct pg *pg, enum pg_pending_kind *kind)
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
	rc = judge_result(pg, result, &p);
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
		rc = statement_result(pg, &kind);
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
		(void)statement_result(pg, &kind);
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

	if (rc == RC_OK && pg_rows(pg) > 0)
		rc = RC_CORRUPT;
	if (changed != NULL)
		*changed = rc == RC_OK ? pg_changed(pg) : 0;
	return rc;
}
