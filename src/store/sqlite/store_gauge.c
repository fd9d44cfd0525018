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
#include "metrics.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_row.h"

/* Index rows that one part of a tally reads: about 2 ms. */
#define TALLY_ROWS 10000

/* The gauges have the order of the key states. */
_Static_assert(METRICS_KEYS_EXPIRED - METRICS_KEYS_PENDING ==
	RECORD_EXPIRED - RECORD_PENDING,
    "a gauge for each state");

static int64_t *
gauge_of(struct metrics_gauges *g, enum record_state state)
{
	return &g->value[METRICS_KEYS_PENDING + (int)state - RECORD_PENDING];
}

/* --- gauges ------------------------------------------------------------- */

static enum rc
count_running(struct db *db, struct metrics_gauges *g)
{
	struct db_stmt *s = db_stmt(db, QUERY_GAUGE_RUNNING);
	enum rc rc = db_step_row(s);

	if (rc == RC_OK)
		*gauge_of(g, RECORD_IN_PROGRESS) = db_column_int(s, 0);
	db_reset(s);
	return rc;
}

/* States that do not end by age: pending, unknown, dead_letter. */
static enum rc
count_open(struct db *db, struct metrics_gauges *g)
{
	struct db_stmt *s = db_stmt(db, QUERY_GAUGE_OPEN);
	enum record_state state;
	const char *name;
	int64_t age;
	enum rc rc;

	*gauge_of(g, RECORD_PENDING) = 0;
	*gauge_of(g, RECORD_UNKNOWN) = 0;
	*gauge_of(g, RECORD_DEAD_LETTER) = 0;
	g->value[METRICS_OLDEST_UNKNOWN] = 0;
	while ((rc = db_step_row(s)) == RC_OK) {
		name = db_column_text(s, 0);
		if (name == NULL || !record_state_parse(name, &state)) {
			db_reset(s);
			return RC_CORRUPT;
		}
		*gauge_of(g, state) = db_column_int(s, 1);
		if (state != RECORD_UNKNOWN)
			continue;
		/* The wall clock may have been set back meanwhile, and the
		 * row may be corrupt. */
		age = store_row_is_time(s, 2)
		    ? clock_wall() - db_column_int(s, 2)
		    : 0;
		g->value[METRICS_OLDEST_UNKNOWN] = age > 0 ? age / 1000 : 0;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Effects that are not delivered. */
static enum rc
count_outbox(struct db *db, struct metrics_gauges *g)
{
	struct db_stmt *s = db_stmt(db, QUERY_GAUGE_OUTBOX);
	enum store_effect_state state;
	const char *name;
	enum rc rc;

	g->value[METRICS_IN_OUTBOX_PENDING] = 0;
	g->value[METRICS_IN_OUTBOX_DEAD_LETTER] = 0;
	while ((rc = db_step_row(s)) == RC_OK) {
		name = db_column_text(s, 0);
		if (name == NULL || !store_effect_state_parse(name, &state)) {
			db_reset(s);
			return RC_CORRUPT;
		}
		g->value[state == STORE_EFFECT_PENDING
			? METRICS_IN_OUTBOX_PENDING
			: METRICS_IN_OUTBOX_DEAD_LETTER] = db_column_int(s, 1);
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static void
unknown_gauges(struct metrics_gauges *g)
{
	int id;

	for (id = 0; id < METRICS_N; id++)
		g->value[id] = -1;
}

enum rc
store_gauges(struct store *store, struct metrics_gauges *g)
{
	struct store_reader *reader;
	const struct store_tally *t = &store->tally;
	enum rc rc;

	unknown_gauges(g);
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = count_running(reader->db, g);
	if (rc == RC_OK)
		rc = count_open(reader->db, g);
	if (rc == RC_OK)
		rc = count_outbox(reader->db, g);
	if (rc == RC_OK)
		rc =
		    store_kept_bytes(reader->db, &g->value[METRICS_KEPT_BYTES]);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		unknown_gauges(g);
		return rc;
	}
	lock_take(&store->lock);
	if (t->counted) {
		*gauge_of(g, RECORD_COMPLETED) = t->keys[RECORD_COMPLETED];
		*gauge_of(g, RECORD_FAILED_RETRYABLE) =
		    t->keys[RECORD_FAILED_RETRYABLE];
		*gauge_of(g, RECORD_EXPIRED) = t->keys[RECORD_EXPIRED];
		g->value[METRICS_IN_OUTBOX_DELIVERED] = t->delivered;
	}
	lock_give(&store->lock);
	return RC_OK;
}

/* --- tally -------------------------------------------------------------- */

/* Counts the next part; RC_NOTFOUND: that was the last. */
static enum rc
tally_part(struct store_tally *t, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_TALLY);
	const char *name;
	enum rc rc;
	int n = 0;

	db_bind_int(s, 1, t->expires_at);
	db_bind_text(s, 2, record_state_name(t->state));
	db_bind_int(s, 3, t->id);
	db_bind_int(s, 4, TALLY_ROWS);
	while (n < TALLY_ROWS && (rc = db_step_row(s)) == RC_OK) {
		n++;
		t->expires_at = db_column_int(s, 0);
		name = db_column_text(s, 1);
		t->id = db_column_int(s, 2);
		if (name == NULL || !record_state_parse(name, &t->state)) {
			rc = RC_CORRUPT;
			break;
		}
		t->sum[t->state]++;
	}
	db_reset(s);
	return rc;
}

/* The same for the outbox. */
static enum rc
tally_effects(struct store_tally *t, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_TALLY_EFFECTS);
	const char *name;
	enum rc rc;
	int n = 0;

	db_bind_int(s, 1, t->key_id);
	db_bind_text(s, 2, store_effect_state_name(t->effect_state));
	db_bind_int(s, 3, t->effect_id);
	db_bind_int(s, 4, TALLY_ROWS);
	while (n < TALLY_ROWS && (rc = db_step_row(s)) == RC_OK) {
		n++;
		t->key_id = db_column_int(s, 0);
		name = db_column_text(s, 1);
		t->effect_id = db_column_int(s, 2);
		if (name == NULL ||
		    !store_effect_state_parse(name, &t->effect_state)) {
			rc = RC_CORRUPT;
			break;
		}
		if (t->effect_state == STORE_EFFECT_DELIVERED)
			t->delivered_sum++;
	}
	db_reset(s);
	return rc;
}

/* The tally is complete: its numbers become the current ones. */
static void
tally_ends(struct store *store)
{
	struct store_tally *t = &store->tally;

	lock_take(&store->lock);
	memcpy(t->keys, t->sum, sizeof(t->keys));
	t->delivered = t->delivered_sum;
	t->counted = true;
	lock_give(&store->lock);
	memset(t->sum, 0, sizeof(t->sum));
	t->expires_at = t->id = 0;
	t->state = RECORD_NONE;
	t->effects = false;
	t->key_id = t->effect_id = t->delivered_sum = 0;
	t->effect_state = STORE_EFFECT_NONE;
}

enum rc
store_tally(struct store *store, bool *done)
{
	struct store_tally *t = &store->tally;
	struct store_reader *reader;
	enum rc rc;

	*done = false;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = t->effects ? tally_effects(t, reader->db)
			: tally_part(t, reader->db);
	store_reader_give(store, reader);
	if (rc != RC_NOTFOUND)
		return rc;
	*done = t->effects;
	if (t->effects)
		tally_ends(store);
	else
		t->effects = true;
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

static bool
can_read(struct store *store, char *why, size_t size)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc == RC_OK) {
		s = db_stmt(reader->db, QUERY_META_SECRET);
		rc = db_step_row(s);
		db_reset(s);
		store_reader_give(store, reader);
	}
	if (rc != RC_OK)
		snprintf(
		    why, size, "the database cannot be read: %s", rc_text(rc));
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
		snprintf(why, size,
		    "%u outcomes are not recorded yet; nothing new runs",
		    h.unrecorded);
	else if (h.last != RC_OK)
		snprintf(why, size, "the database cannot be written: %s",
		    rc_text(h.last));
	else if (h.closed == RC_LIMIT)
		snprintf(
		    why, size, "the write-ahead log is longer than max_wal");
	else if (h.closed != RC_OK)
		snprintf(why, size, "the disk has no space for new keys");
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
store_health(struct store *store, char *why, size_t size)
{
	return is_in_place(store, why, size) && can_read(store, why, size) &&
	    can_write(store, why, size) && can_begin(store, why, size);
}
