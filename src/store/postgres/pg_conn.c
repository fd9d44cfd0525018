/*
 * PostgreSQL: connections, what goes over them, and failures.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "pg_impl.h"

/* Pause (ms) between two lines about a COMMIT that still fails. */
#define COMMIT_LOG_PAUSE 60000

/* What a SQLSTATE, or a class of them, means; the first that fits. */
static const struct {
	const char *prefix;
	enum pg_failure failure;
	enum rc rc;
} states[] = {
	{ "40001", PG_AGAIN, RC_BUSY }, /* serialization_failure */
	{ "40P01", PG_AGAIN, RC_BUSY }, /* deadlock_detected */
	{ "55P03", PG_AGAIN, RC_BUSY }, /* lock_not_available */
	{ "57014", PG_AGAIN, RC_BUSY }, /* query_canceled, statement_timeout */
	/* session_check, session_next: see session.sql */
	{ "22P02", PG_WENT_BACK, RC_WENT_BACK },
	{ "40003", PG_LOST, RC_IO }, /* statement_completion_unknown */
	{ "53100", PG_OTHER, RC_FULL },
	{ "53300", PG_LOST, RC_BUSY }, /* too_many_connections */
	{ "57P", PG_LOST, RC_BUSY },   /* it stops, starts, or has crashed */
	{ "25006", PG_LOST, RC_IO },   /* a standby: the primary is elsewhere */
	{ "25P03", PG_LOST, RC_BUSY }, /* this process was frozen */
	{ "08P01", PG_OTHER, RC_INVALID }, /* a format has too few letters */
	{ "08", PG_LOST, RC_IO },
	{ "22", PG_OTHER, RC_CORRUPT },
	{ "23", PG_OTHER, RC_CORRUPT },
	{ "42501", PG_OTHER, RC_IO }, /* insufficient_privilege */
	{ "42", PG_OTHER, RC_CORRUPT },
	{ "54", PG_OTHER, RC_LIMIT },
	{ "P0001", PG_OTHER, RC_INVALID }, /* raised by a function of ours */
	{ "XX00", PG_OTHER, RC_CORRUPT },
	{ "", PG_OTHER, RC_IO },
};

bool
pg_wait(const PGconn *conn, short events, int64_t deadline)
{
	struct pollfd p = { PQsocket(conn), events, 0 };
	int64_t left;
	int n;

	do {
		left = deadline - clock_mono();
		if (left < 0)
			left = 0;
		n = poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX);
	} while ((n == -1 && errno == EINTR) || (n == 0 && left > INT_MAX));
	return n != 0; /* libpq finds an error of the socket */
}

/* --- failures ------------------------------------------------------------- */

/* A transaction whose COMMIT fails is tried again and again, on many
 * connections.  Whether this failure is to be logged: the first one is, and
 * then one in a while, because the reason may have become another. */
static bool
tells_commit_failed(struct pg_target *t)
{
	const int64_t now = clock_mono();
	int64_t before = atomic_load(&t->commit_failed);

	return (before == 0 || now - before >= COMMIT_LOG_PAUSE) &&
	    atomic_compare_exchange_strong(&t->commit_failed, &before, now);
}

static void
pg_log(const struct pg *pg, const char *doing)
{
	if (pg->quiet ||
	    (strcmp(doing, pg_query_name(PG_QUERY_COMMIT)) == 0 &&
		!tells_commit_failed(pg->target)))
		return;
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", pg_target_name(pg->target)),
	    LOG_S("doing", doing), LOG_S("message", pg->message),
	    LOG_S("sqlstate", pg->sqlstate));
}

enum rc
pg_lost(struct pg *pg, enum rc rc, const char *doing, const char *message)
{
	if (pg->failure == PG_LOST)
		return pg->rc;
	pg->failure = PG_LOST;
	pg->rc = rc;
	pg_target_scrub(pg->target, message, pg->message, sizeof(pg->message));
	pg_log(pg, doing);
	return rc;
}

enum rc
pg_misused(struct pg *pg, const char *message)
{
	if (pg->failure == PG_NONE) {
		pg->failure = PG_OTHER;
		pg->rc = RC_INVALID;
	}
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", pg_target_name(pg->target)),
	    LOG_S("message", message));
#ifdef RECORD_CHECKS
	assert(!"a format is wrong");
#endif
	return RC_INVALID;
}

static const char *
pg_field(const PGresult *result, int code)
{
	const char *text = PQresultErrorField(result, code);

	return text != NULL ? text : "";
}

static bool
ends_connection(const PGresult *result)
{
	const char *severity = pg_field(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	return strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0;
}

enum rc
pg_refused(struct pg *pg, const PGresult *result, const char *doing)
{
	const char *state = pg_field(result, PG_DIAG_SQLSTATE);
	enum pg_failure failure;
	const char *message;
	size_t i = 0;

	if (state[0] == '\0')
		return pg_lost(pg, RC_IO, doing, PQerrorMessage(pg->conn));
	/* After a failure in this transaction: that one counts. */
	if (strcmp(state, "25P02") == 0 && pg->failure != PG_NONE)
		return pg->rc;
	while (strncmp(state, states[i].prefix, strlen(states[i].prefix)) != 0)
		i++;
	message = pg_field(result, PG_DIAG_MESSAGE_PRIMARY);
	snprintf(pg->sqlstate, sizeof(pg->sqlstate), "%s", state);
	if (ends_connection(result) || states[i].failure == PG_LOST)
		return pg_lost(pg, states[i].rc, doing, message);
	failure = states[i].failure;
	if (pg->failure == PG_NONE) {
		pg->failure = failure;
		pg->rc = states[i].rc;
	}
	pg_target_scrub(pg->target, message, pg->message, sizeof(pg->message));
	if (failure == PG_OTHER)
		pg_log(pg, doing);
	return states[i].rc;
}

/* Of COMMIT: "already committed locally, but might not have been replicated".
 * Any other warning then is as bad. */
static void
on_notice(void *arg, const PGresult *notice)
{
	struct pg *pg = arg;

	if (!pg->committing ||
	    strcmp(pg_field(notice, PG_DIAG_SEVERITY_NONLOCALIZED),
		"WARNING") != 0)
		return;
	pg->warned = true;
	snprintf(pg->sqlstate, sizeof(pg->sqlstate), "%s",
	    pg_field(notice, PG_DIAG_SQLSTATE));
	pg_target_scrub(pg->target, pg_field(notice, PG_DIAG_MESSAGE_PRIMARY),
	    pg->message, sizeof(pg->message));
}

/* --- connections ---------------------------------------------------------- */

enum rc
pg_open(struct pg **out, struct pg_target *target, int64_t deadline)
{
	struct pg *pg;
	bool refused;
	enum rc rc;

	*out = NULL;
	pg = calloc(1, sizeof(*pg));
	if (pg == NULL)
		return RC_NOMEM;
	pg->target = target;
	pg->deadline = deadline;
	pg->row = -1;
	rc = pg_connect(target, deadline, &pg->conn, &refused, pg->message,
	    sizeof(pg->message));
	if (rc == RC_OK) {
		(void)PQsetNoticeReceiver(pg->conn, on_notice, pg);
	} else {
		pg->failure = refused ? PG_REFUSED : PG_LOST;
		pg->rc = rc;
	}
	*out = pg;
	return rc;
}

void
pg_close(struct pg *pg)
{
	if (pg == NULL)
		return;
	PQclear(pg->result);
	PQfinish(pg->conn);
	free(pg->pending);
	free(pg);
}

void
pg_set_deadline(struct pg *pg, int64_t deadline)
{
	pg->deadline = deadline;
}

void
pg_set_quiet(struct pg *pg, bool quiet)
{
	pg->quiet = quiet;
}

enum pg_failure
pg_failure(const struct pg *pg)
{
	return pg->failure;
}

const char *
pg_message(const struct pg *pg)
{
	return pg->message;
}

const char *
pg_sqlstate(const struct pg *pg)
{
	return pg->sqlstate;
}

void
pg_server_place(const struct pg *pg, char *out, size_t size)
{
	snprintf(out, size, "%s port %s", PQhost(pg->conn), PQport(pg->conn));
}

static int64_t
pg_between(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

enum rc
pg_set_session(
    struct pg *pg, int64_t patience, int64_t grace, const char *schema)
{
	const int64_t lock = pg_between(1, patience, INT32_MAX / 2);
	enum rc rc;

	pg_send_quietly(pg, PG_QUERY_SESSION_SET, "iiis", lock, lock + grace,
	    pg_between(1000, lock / 2, 10000), schema);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_clear(pg) : rc;
}

/* --- transactions --------------------------------------------------------- */

void
pg_begin(struct pg *pg)
{
	pg_send_quietly(pg, PG_QUERY_BEGIN, "");
}

void
pg_begin_read(struct pg *pg)
{
	pg_send_quietly(pg, PG_QUERY_BEGIN_READ, "");
}

void
pg_commit_send(struct pg *pg)
{
	if (pg->failure != PG_NONE)
		return;
	pg->committing = true;
	pg->warned = false;
	pg_send(pg, PG_QUERY_COMMIT, "");
}

enum rc
pg_commit_result(struct pg *pg)
{
	enum rc rc = pg_result(pg);

	/* A transaction that has failed is rolled back, without an error. */
	if (rc == RC_OK && strcmp(PQcmdStatus(pg->result), "COMMIT") != 0)
		rc = pg_misused(pg, "COMMIT after a failure");
	pg->committing = false;
	if (pg->warned && pg->failure != PG_LOST) {
		pg->failure = PG_LOST;
		pg->rc = rc = RC_IO;
		pg_log(pg, pg_query_name(PG_QUERY_COMMIT));
	}
	if (rc == RC_OK && !pg->quiet &&
	    atomic_exchange(&pg->target->commit_failed, 0) != 0)
		log_event(LOG_WARN, "store-commits", NULL,
		    LOG_S("database", pg_target_name(pg->target)));
	return rc;
}

enum rc
pg_commit(struct pg *pg)
{
	enum rc rc;

	if (pg->failure != PG_NONE)
		return pg->rc;
	FAULT(COMMIT_READY);
	pg_commit_send(pg);
	(void)pg_sync(pg); /* the result tells whether it failed */
	FAULT(COMMIT_SENT);
	rc = pg_commit_result(pg);
	FAULT(COMMIT_DONE);
	return rc;
}

void
pg_rollback(struct pg *pg)
{
	pg->committing = false;
	/* A statement that fails must not take the rollback along. */
	(void)pg_end_group(pg);
	pg->local = RC_OK;
	pg_send_quietly(pg, PG_QUERY_ROLLBACK, "");
	(void)pg_sync(pg);
}

/* --- statements ----------------------------------------------------------- */

static const struct {
	const char *name, *text;
} statements[PG_QUERY_COUNT] = {
#define X(name, text, reason) { #name, text },
	PG_SESSION(X) PG_STORE(X) PG_QUERIES(X)
#undef X
};

const char *
pg_query_name(enum pg_query q)
{
	assert(q < PG_QUERY_COUNT);
	return statements[q].name;
}

const char *
pg_query_text(enum pg_query q)
{
	assert(q < PG_QUERY_COUNT);
	return statements[q].text;
}
