/*
 * Copying all that another store has into this one, in one transaction: after a
 * kill at any point the target has all, or nothing.  Meanwhile no daemon can
 * start on the source, and none on the target.
 *
 * The numbers of keys and effects stay, and so does the secret: a scope or a
 * downstream key that was made before is good afterwards.  Leases are not
 * copied, so the source must have none.  Times are converted from the source's
 * store time to the server's clock.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "store_module.h"
#include "postgres_copy.h"

/* What a group of statements may take on top of busy_timeout (ms): some of
 * them read all rows. */
#define LONG 3600000

/* --- before and after ----------------------------------------------------- */

/*
 * Keeps other processes from the source.  A daemon that starts now fails; one
 * that runs is found.  Programs that handlers have left behind can change
 * nothing without a lease.
 */
static enum rc
source_take(struct postgres_copy *c)
{
	struct liveness *liveness;
	enum rc rc;

	if ((rc = store_liveness(c->from, &liveness)) != RC_OK)
		return postgres_copy_refuse(c, rc,
		    "%s: cannot tell which processes use it",
		    store_database(c->from));
	if ((rc = liveness_take_all(liveness)) == RC_BUSY)
		return postgres_copy_refuse(c, RC_BUSY,
		    "%s: a daemon uses it, or another oncectl: stop it "
		    "before",
		    store_database(c->from));
	if (rc != RC_OK)
		return postgres_copy_refuse(
		    c, rc, "%s: cannot be locked", store_database(c->from));
	return RC_OK;
}

/* Settles what processes that are gone have left. */
static enum rc
source_settle(struct postgres_copy *c)
{
	struct store_change changes[16];
	enum rc rc;
	int n;

	do {
		n = 0;
		rc = store_recover(c->from, 16, changes, &n);
		store_changes_free(changes, n);
	} while (rc == RC_OK && n > 0);
	if (rc != RC_OK)
		(void)postgres_copy_refuse(
		    c, rc, "%s: %s", store_database(c->from), rc_text(rc));
	return rc;
}

static enum rc
target_is_empty(struct postgres_copy *c)
{
	bool empty, unused;
	enum rc rc;

	pg_send(c->pg, PG_QUERY_COPY_TARGET, "");
	if ((rc = pg_sync(c->pg)) != RC_OK ||
	    (rc = pg_one(c->pg, "??", &empty, &unused)) != RC_OK)
		return rc;
	if (!empty)
		return postgres_copy_refuse(c, RC_EXISTS,
		    "%s: has keys or effects already: name a database "
		    "without any",
		    txn_database(c->to->pool));
	if (!unused)
		return postgres_copy_refuse(c, RC_BUSY,
		    "%s: a daemon uses it, or was killed: stop all of them, "
		    "and run oncectl sweep on each host",
		    txn_database(c->to->pool));
	return RC_OK;
}

static enum rc
count_target(struct postgres_copy *c)
{
	struct store_transfer n;
	enum rc rc;

	pg_send(
	    c->pg, PG_QUERY_COPY_NUMBERS, "ii", c->last_key, c->last_effect);
	pg_send(c->pg, PG_QUERY_KEPT_MEND, "");
	pg_send(c->pg, PG_QUERY_COPY_COUNTS, "");
	pg_send(c->pg, PG_QUERY_DOCTOR_BODIES, "");
	if ((rc = pg_sync(c->pg)) != RC_OK ||
	    (rc = pg_result(c->pg)) != RC_OK ||
	    (rc = pg_result(c->pg)) != RC_OK ||
	    (rc = pg_one(c->pg, "iiiiii", &n.keys, &n.answer_bytes, &n.requests,
		 &n.outputs, &n.effects, &n.payload_bytes)) != RC_OK)
		return rc;
	if (memcmp(&n, &c->n, sizeof(n)) != 0)
		return postgres_copy_refuse(c, RC_CORRUPT,
		    "after the copy %" PRId64 " of %" PRId64
		    " keys and %" PRId64 " of %" PRId64
		    " effects are there; nothing was kept",
		    n.keys, c->n.keys, n.effects, c->n.effects);
	rc = pg_one(c->pg, "-i", &n.keys);
	if (rc == RC_OK && n.keys != 0)
		rc = postgres_copy_refuse(c, RC_CORRUPT,
		    "after the copy %" PRId64 " answers lack some of their "
		    "bytes; nothing was kept",
		    n.keys);
	return rc;
}

static enum rc
count_kind(struct postgres_copy *c, const char *what, int64_t rows, int64_t n)
{
	if (rows == n)
		return RC_OK;
	return postgres_copy_refuse(c, RC_CORRUPT,
	    "%s: has %" PRId64 " %s, of which %" PRId64
	    " can be read: \"oncectl doctor\" names the others",
	    store_database(c->from), rows, what, n);
}

/* Rows that make no sense are not listed, and were not copied. */
static enum rc
count_source(struct postgres_copy *c)
{
	struct store_counts counts;
	enum rc rc;

	if ((rc = store_stats(c->from, &counts)) != RC_OK)
		return postgres_copy_refuse(
		    c, rc, "%s: %s", store_database(c->from), rc_text(rc));
	rc = count_kind(c, "keys", counts.key_rows, c->n.keys);
	return rc == RC_OK
	    ? count_kind(c, "effects", counts.effect_rows, c->n.effects)
	    : rc;
}

/* --- the transaction ------------------------------------------------------ */

static void
copy_reset(struct postgres_copy *c, struct pg *pg)
{
	c->pg = pg;
	memset(&c->n, 0, sizeof(c->n));
	free(c->fingerprint_spec_text);
	c->fingerprint_spec_text = NULL;
	c->last_key = c->last_effect = 0;
	c->sent = c->batch = 0;
	c->bytes = 0;
	pg_arrays_clear(&c->keys);
	c->ahead = clock_boot() + c->to->ahead - store_now(c->from);
}

void
postgres_copy_patience(const struct store *to, struct pg *pg)
{
	pg_set_deadline(pg, clock_mono() + to->busy_timeout + LONG);
}

/*
 * The update of once_meta comes first.  A daemon that starts reads that row
 * with a lock before it inserts its own in once_owner.  So this transaction
 * sees the daemon, or the daemon waits and gets the new secret.
 */
static enum rc
target_take(struct postgres_copy *c)
{
	enum rc rc;

	postgres_copy_patience(c->to, c->pg);
	pg_send(c->pg, PG_QUERY_COPY_PATIENCE, "");
	pg_send(c->pg, PG_QUERY_COPY_SECRET, "b", c->to->secret,
	    sizeof(c->to->secret));
	if ((rc = pg_sync(c->pg)) != RC_OK ||
	    (rc = pg_result(c->pg)) != RC_OK ||
	    (rc = pg_result(c->pg)) != RC_OK)
		return rc;
	return target_is_empty(c);
}

/* What was sent, as the target now has it. */
static enum rc
target_check(struct postgres_copy *c)
{
	enum rc rc;

	if ((rc = count_target(c)) != RC_OK)
		return rc;
	c->to->copying = c->pg;
	rc = postgres_copy_compare(c);
	c->to->copying = NULL;
	return rc == RC_OK ? count_source(c) : rc;
}

static enum rc
copy_run(struct pg *pg, void *arg)
{
	struct postgres_copy *c = arg;
	enum rc rc;

	copy_reset(c, pg);
	if ((rc = target_take(c)) == RC_OK &&
	    (rc = postgres_copy_keys(c)) == RC_OK &&
	    (rc = postgres_copy_effects(c)) == RC_OK &&
	    (rc = postgres_copy_end(c)) == RC_OK &&
	    (rc = target_check(c)) == RC_OK)
		postgres_copy_patience(c->to, pg);
	return rc;
}

enum rc
postgres_copy(struct store *to, struct store *from, struct store_transfer *n,
    char *why, size_t size)
{
	struct postgres_copy c = {
		.from = from, .to = to, .why = why, .size = size
	};
	enum rc rc;

	why[0] = '\0';
	memcpy(to->secret, store_secret(from), sizeof(to->secret));
	txn_pin(to->pool, to->schema, NULL);
	if ((rc = source_take(&c)) == RC_OK &&
	    (rc = source_settle(&c)) == RC_OK)
		rc = postgres_write(to, copy_run, &c);
	*n = c.n;
	free(c.fingerprint_spec_text);
	pg_arrays_free(&c.keys);
	if (rc != RC_OK && why[0] == '\0')
		(void)postgres_copy_refuse(&c, rc, "%s: %s",
		    txn_database(to->pool), txn_message(to->pool));
	return rc;
}
