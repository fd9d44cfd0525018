/*
 * Counts of rows, and the sizes of the tables.
 */
#include "config.h"

#include "postgres_impl.h"

/* --- a walk --------------------------------------------------------------- */

struct walk {
	struct store_walk *w;
	int64_t n;
};

/* Changes *w only if all was read, since it may run several times. */
static enum rc
walk_run(struct pg *pg, void *arg)
{
	const struct walk *walk = arg;
	struct store_walk *w = walk->w;
	struct store_aged c = { 0 };
	int64_t last;
	enum rc rc;

	pg_send(pg, w->effects ? PG_QUERY_TALLY_EFFECTS : PG_QUERY_TALLY, "ii",
	    w->at, walk->n);
	if ((rc = pg_sync(pg)) != RC_OK)
		return rc;
	rc = w->effects ? pg_one(pg, "ii", &last, &c.delivered)
			: pg_one(pg, "iiii", &last, &c.completed,
			      &c.failed_retryable, &c.expired);
	if (rc != RC_OK || last <= 0)
		return rc == RC_OK ? RC_NOTFOUND : rc;
	w->at = last;
	w->sum.completed += c.completed;
	w->sum.failed_retryable += c.failed_retryable;
	w->sum.expired += c.expired;
	w->sum.delivered += c.delivered;
	return RC_OK;
}

enum rc
postgres_walk(struct store *s, struct store_walk *w, int n)
{
	struct walk walk = { w, n };

	return postgres_look(s, walk_run, &walk);
}

/* --- sizes ---------------------------------------------------------------- */

static enum rc
gauge_bytes(struct pg *pg, void *arg)
{
	int64_t bytes;
	enum rc rc;

	pg_send(pg, PG_QUERY_STORE_BYTES, "");
	if ((rc = pg_sync(pg)) == RC_OK &&
	    (rc = pg_one(pg, "i", &bytes)) == RC_OK)
		atomic_store((_Atomic int64_t *)arg, bytes);
	return rc;
}

enum rc
postgres_measure(struct store *s)
{
	return postgres_read(s, gauge_bytes, &s->bytes);
}
