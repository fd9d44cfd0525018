/*
 * Keys with an open outcome, for reconcilers: which one is due.
 *
 * Only the host of a lost attempt can tell whether processes of the attempt
 * still act.  So the keys of other hosts' attempts are due for those hosts
 * alone, until that is known (see attempt_lock in schema.sql).
 */
#include "config.h"

#include <string.h>

#include "postgres_row.h"

struct due {
	struct store *s;
	int64_t after; /* the caller of that number */
	struct record *record;
	int64_t first, now; /* when a key is due first; 0: there is none */
};

static enum rc
due_after(struct pg *pg, const struct due *d, int64_t caller)
{
	enum rc rc;

	pg_send(pg, PG_QUERY_RECONCILE_DUE, "ii", caller, d->s->host.number);
	if ((rc = pg_sync(pg)) == RC_OK && (rc = pg_result(pg)) == RC_OK)
		rc = postgres_row_next(d->s, pg, d->record);
	return rc;
}

static enum rc
run_due(struct pg *pg, void *arg)
{
	struct due *d = arg;
	enum rc rc;

	memset(d->record, 0, sizeof(*d->record));
	d->first = 0;
	pg_send(pg, PG_QUERY_RECONCILE_FIRST, "i", d->s->host.number);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "mm", &d->first, &d->now);
	if (rc != RC_OK)
		return rc;
	if (d->first > d->now)
		return RC_NOTFOUND;
	rc = due_after(pg, d, d->after);
	if (rc == RC_NOTFOUND)
		rc = due_after(pg, d, INT64_MIN);
	return rc;
}

enum rc
postgres_due(struct store *s, int64_t after, struct record *key)
{
	struct due d = { .s = s, .after = after, .record = key };
	struct liveness *liveness;
	enum rc rc;

	memset(key, 0, sizeof(*key));
	/* An operator may not have looked for this host's files yet.  Without
	 * them no key of its attempts is due here. */
	(void)postgres_liveness(s, &liveness);
	rc = postgres_read(s, run_due, &d);
	if (rc == RC_NOTFOUND)
		key->reconcile_after = d.first;
	return rc;
}
