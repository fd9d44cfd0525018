/*
 * Metrics and health of the key store: the number of keys in each state, and
 * whether the store can do its work.
 *
 * Asking is cheap on a store of any size.  States with few keys in a healthy
 * store are counted at each call, in an index that holds no others.  States
 * that end by age are counted now and then (store_tally), in parts, so that no
 * long read keeps the write-ahead log from being reset.
 */
#include "config.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "gauges.h"
#include "metrics.h"
#include "plural.h"
#include "store_files.h"
#include "store_impl.h"
#include "store_kept.h"

/* Index rows that one part of a tally reads: about 2 ms. */
#define TALLY_ROWS 10000

/* --- gauges ------------------------------------------------------------- */

/* Keys that do not end by age: in_progress, pending, unknown, dead_letter. */
static enum rc
count_open(struct db *db, struct metrics_gauges *g)
{
	static const enum record_state open[] = { RECORD_PENDING,
		RECORD_UNKNOWN, RECORD_DEAD_LETTER };
	struct store_count keys[RECORD_NSTATES];
	enum rc rc;

	rc = db_onef(db_stmt(db, QUERY_GAUGE_RUNNING), "i",
	    gauges_of(g, RECORD_IN_PROGRESS));
	if (rc == RC_OK)
		rc = store_count_keys(db, QUERY_GAUGE_OPEN, keys);
	if (rc != RC_OK)
		return rc;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		*gauges_of(g, open[i]) = keys[open[i]].n;
	g->value[METRICS_OLDEST_UNKNOWN] =
	    gauges_age(keys[RECORD_UNKNOWN].oldest, clock_wall()) / 1000;
	return RC_OK;
}

/* Effects that are not delivered. */
static enum rc
count_outbox(struct db *db, struct metrics_gauges *g)
{
	struct store_count effects[STORE_EFFECT_NSTATES];
	enum rc rc;

	rc = store_count_effects(db, QUERY_GAUGE_OUTBOX, effects);
	if (rc != RC_OK)
		return rc;
	g->value[METRICS_IN_OUTBOX_PENDING] = effects[STORE_EFFECT_PENDING].n;
	g->value[METRICS_IN_OUTBOX_DEAD_LETTER] =
	    effects[STORE_EFFECT_DEAD_LETTER].n;
	return RC_OK;
}

enum rc
sqlite_gauges(struct store *store, struct metrics_gauges *g)
{
	struct store_reader *reader;
	const struct store_tally *t = &store->tally;
	enum rc rc;

	gauges_unknown(g);
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = count_open(reader->db, g);
	if (rc == RC_OK)
		rc = count_outbox(reader->db, g);
	if (rc == RC_OK)
		rc =
		    store_kept_bytes(reader->db, &g->value[METRICS_KEPT_BYTES]);
	if (rc == RC_OK)
		rc = store_used_bytes(
		    reader->db, &g->value[METRICS_STORE_BYTES]);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		gauges_unknown(g);
		return rc;
	}
	lock_take(&store->lock);
	if (t->counted) {
		*gauges_of(g, RECORD_COMPLETED) = t->key[RECORD_COMPLETED];
		*gauges_of(g, RECORD_FAILED_RETRYABLE) =
		    t->key[RECORD_FAILED_RETRYABLE];
		*gauges_of(g, RECORD_EXPIRED) = t->key[RECORD_EXPIRED];
		g->value[METRICS_IN_OUTBOX_DELIVERED] = t->delivered;
	}
	lock_give(&store->lock);
	return RC_OK;
}

/* --- tally -------------------------------------------------------------- */

/* The tally is complete: its numbers become the current ones. */
static void
tally_ends(struct store *store)
{
	struct store_tally *t = &store->tally;

	lock_take(&store->lock);
	memcpy(t->key, t->keys.sum, sizeof(t->key));
	t->delivered = t->effects.sum[STORE_EFFECT_DELIVERED];
	t->counted = true;
	lock_give(&store->lock);
	memset(&t->keys, 0, sizeof(t->keys));
	memset(&t->effects, 0, sizeof(t->effects));
	t->keys_done = false;
}

enum rc
sqlite_tally(struct store *store, bool *done)
{
	struct store_tally *t = &store->tally;
	struct store_reader *reader;
	enum rc rc;

	*done = false;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = t->keys_done
	    ? store_walk_effects(reader->db, &t->effects, TALLY_ROWS)
	    : store_walk_keys(reader->db, &t->keys, TALLY_ROWS);
	store_reader_give(store, reader);
	if (rc != RC_NOTFOUND)
		return rc;
	*done = t->keys_done;
	if (t->keys_done)
		tally_ends(store);
	else
		t->keys_done = true;
	return RC_OK;
}

/* --- health ------------------------------------------------------------- */

static bool
is_in_place(struct store *store, char *why, size_t size)
{
	if (store_guard_check(&store->guard) == RC_OK)
		return true;
	store_guard_why(&store->guard, why, size);
	return false;
}

/* Names the file that may not be used, if there is one, and the cure. */
static void
say_failed(const struct store *store, const char *what, enum rc rc, char *why,
    size_t size)
{
	struct store_files_bar bar;

	if (store_files_check(store->file, STORE_FILES_KEEP, &bar))
		snprintf(why, size, "the database %s cannot be %s: %s",
		    store->file, what, rc_text(rc));
	else
		snprintf(why, size, "the database cannot be %s: %s: %s", what,
		    bar.file, bar.cure);
}

static bool
can_read(struct store *store, char *why, size_t size)
{
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc == RC_OK) {
		rc = db_onef(db_stmt(reader->db, QUERY_META_SECRET), "-");
		store_reader_give(store, reader);
	}
	if (rc != RC_OK)
		say_failed(store, "read", rc, why, size);
	return rc == RC_OK;
}

/*
 * A write is tried only if the last one failed.  So health checks cost a
 * healthy store no write, and an idle store is found healthy again.
 */
static bool
can_write(struct store *store, char *why, size_t size)
{
	struct committer_health h;

	committer_health(store->committer, &h);
	if (!h.locked && (h.last != RC_OK || h.closed != RC_OK)) {
		(void)store_clock_touch(store);
		committer_health(store->committer, &h);
	}
	if (h.last == RC_WENT_BACK || h.last == RC_REPLACED)
		store_guard_why(&store->guard, why, size);
	else if (h.locked)
		snprintf(why, size, "another process holds the write lock");
	else if (h.closed == RC_UNRECORDED)
		snprintf(why, size, "%u %s not recorded yet; nothing new runs",
		    h.unrecorded,
		    PLURAL(h.unrecorded, "outcome is", "outcomes are"));
	else if (h.last != RC_OK)
		say_failed(store, "written", h.last, why, size);
	else if (h.closed == RC_LIMIT)
		snprintf(
		    why, size, "the write-ahead log is longer than max_wal");
	else if (h.closed != RC_OK)
		snprintf(why, size, "the disk of %s has no space for new keys",
		    store->file);
	else
		return true;
	return false;
}

/* Only routes with on_crash = resume or a reconciler need these files. */
static bool
can_begin(struct store *store, char *why, size_t size)
{
	enum rc rc = store_attempt_check(store);

	if (rc != RC_OK)
		snprintf(why, size,
		    "no file for an attempt can be made in %s-attempts: %s; "
		    "nothing that may be resumed or reconciled runs",
		    store->file, rc_text(rc));
	return rc == RC_OK;
}

bool
sqlite_health(struct store *store, char *why, size_t size)
{
	return is_in_place(store, why, size) && can_read(store, why, size) &&
	    can_write(store, why, size) && can_begin(store, why, size);
}
