/*
 * The numbers of operators: of oncectl, which has sessions and no row in
 * once_owner.
 *
 * A number tells the day on which it was made, so that the sessions of an
 * operator that was killed can be deleted later.
 *
 * And the rows of a process that is gone.
 */
#include "config.h"

#include "clock.h"
#include "uuid.h"
#include "postgres_impl.h"

/* Above all numbers of daemons (liveness_self()); then 16 bits for the day of
 * the server's clock, and 46 random ones. */
#define OPERATORS (INT64_C(1) << 62)
#define DAY_SHIFT 46
#define DAY_MASK  0xffff

#define DAY       INT64_C(86400000) /* ms */
#define KEPT_DAYS 7                 /* no operator lives so long */
#define PAUSE     INT64_C(3600000)  /* ms between two deletions */

static int64_t
operators_of(int64_t day)
{
	return OPERATORS | (day & DAY_MASK) << DAY_SHIFT;
}

int64_t
postgres_operator_new(const struct store *s)
{
	const uint64_t bits = (uint64_t)uuid_bits() << 32 | uuid_bits();

	return operators_of(postgres_now(s) / DAY) |
	    (int64_t)(bits & ((UINT64_C(1) << DAY_SHIFT) - 1));
}

struct operators {
	int64_t first, end;
};

static enum rc
run_forget(struct pg *pg, void *arg)
{
	const struct operators *o = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_FORGET, "ii", o->first, o->end);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_result(pg) : rc;
}

enum rc
postgres_operators_forget(struct store *s)
{
	struct operators o = { OPERATORS,
		operators_of(postgres_now(s) / DAY - KEPT_DAYS) };
	const int64_t now = clock_boot();
	enum rc rc;

	if (s->forgot != 0 && now - s->forgot < PAUSE)
		return RC_OK;
	rc = txn_run(s->pool, TXN_TWICE, run_forget, &o);
	if (rc == RC_OK)
		s->forgot = now;
	return rc == RC_BUSY ? RC_OK : rc; /* later */
}

/* --- of a process that is gone ------------------------------------------- */

/* First waits for the end of transactions that a dead process has left to the
 * server: they may commit leases. */
static enum rc
run_remove(struct pg *pg, void *arg)
{
	const int64_t *owner = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_LOCK, "i", *owner);
	pg_send(pg, PG_QUERY_OWNER_DELETE, "i", *owner);
	pg_send(pg, PG_QUERY_SESSION_DELETE, "i", *owner);
	rc = pg_sync(pg);
	for (int i = 0; i < 3 && rc == RC_OK; i++)
		rc = pg_result(pg);
	return rc;
}

/* Without a session, because it may delete this process's own. */
enum rc
postgres_owner_remove(struct store *s, int64_t owner)
{
	enum rc rc = txn_run(s->pool, TXN_TWICE, run_remove, &owner);

	return rc == RC_BUSY ? RC_OK : rc; /* later */
}
