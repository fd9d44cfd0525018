/*
 * Whether a pooler gives each transaction another session of the server.
 *
 * Prepared statements, lock_timeout and the other settings belong to a session.
 * With such a pooler (pgbouncer: pool_mode = transaction) they would be lost,
 * or another program's.  It is found by two connections: while the second one
 * is in a transaction, the first must keep its session, and the second must
 * have another one.
 */
#include "config.h"

#include "postgres_impl.h"

struct sessions {
	struct pg *first;
	int64_t before, second, after; /* processes of the server */
};

/* Without a prepared statement, which a pooler may refuse. */
static enum rc
session_read(struct pg *pg, int64_t *process)
{
	enum rc rc = pg_exec(pg, pg_query_text(PG_QUERY_SESSION_PROCESS));

	return rc == RC_OK ? pg_row(pg, "i", process) : rc;
}

static enum rc
run_second(struct pg *pg, void *arg)
{
	struct sessions *c = arg;
	enum rc rc;

	if ((rc = pg_exec(pg, pg_query_text(PG_QUERY_BEGIN))) == RC_OK &&
	    (rc = session_read(pg, &c->second)) == RC_OK)
		rc = session_read(c->first, &c->after);
	return rc;
}

static enum rc
run_first(struct pg *pg, void *arg)
{
	struct store *s = arg;
	struct sessions c = { .first = pg };
	enum rc rc;

	if ((rc = session_read(pg, &c.before)) == RC_OK)
		rc = txn_apart(s->pool, run_second, &c);
	if (rc == RC_OK && (c.before == c.second || c.before != c.after))
		rc = RC_LOST;
	return rc;
}

bool
postgres_is_pooled(struct store *s)
{
	return txn_apart(s->pool, run_first, s) == RC_LOST;
}
