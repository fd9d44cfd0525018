/*
 * Metrics: the number of keys in each state.
 *
 * Asking is cheap on a store of any size.  States with few keys in a healthy
 * store are counted at each call, in an index that holds no others.  States
 * that end by age are counted now and then (store_tally), in parts.
 */
#include "config.h"

#include <string.h>

#include "gauges.h"
#include "postgres_count.h"
#include "postgres_impl.h"

#include "store_browse.h"

/* Rows that one part of a tally reads: some milliseconds. */
#define TALLY_ROWS 10000

/* The same for a page that counts them at once. */
#define WINDOW 20000

/* --- gauges --------------------------------------------------------------- */

struct open_counts {
	const struct store *s;
	struct postgres_count key[RECORD_NSTATES];
	struct postgres_count effect[STORE_EFFECT_NSTATES];
	int64_t running, kept_bytes, store_bytes;
};

static enum rc
gauge_open(struct pg *pg, void *arg)
{
	struct open_counts *c = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_GAUGE_RUNNING, "i", c->s->leases_from);
	pg_send(pg, PG_QUERY_GAUGE_OPEN, "");
	pg_send(pg, PG_QUERY_GAUGE_OUTBOX, "");
	pg_send(pg, PG_QUERY_KEPT_BYTES, "");
	pg_send(pg, PG_QUERY_STORE_BYTES, "");
	if ((rc = pg_sync(pg)) == RC_OK &&
	    (rc = pg_one(pg, "i", &c->running)) == RC_OK &&
	    (rc = postgres_count_keys(pg, c->key)) == RC_OK &&
	    (rc = postgres_count_effects(pg, c->effect)) == RC_OK &&
	    (rc = pg_one(pg, "i", &c->kept_bytes)) == RC_OK)
		rc = pg_one(pg, "i", &c->store_bytes);
	return rc;
}

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

/* Those of the last complete tally. */
static void
add_tally(struct store *s, struct metrics_gauges *g)
{
	const struct postgres_tally *t = &s->tally;

	lock_take(&s->lock);
	if (t->counted) {
		*gauges_of(g, RECORD_COMPLETED) = t->last.completed;
		*gauges_of(g, RECORD_FAILED_RETRYABLE) =
		    t->last.failed_retryable;
		*gauges_of(g, RECORD_EXPIRED) = t->last.expired;
		g->value[METRICS_IN_OUTBOX_DELIVERED] = t->last_delivered;
	}
	lock_give(&s->lock);
}

enum rc
postgres_gauges(struct store *s, struct metrics_gauges *g)
{
	static const enum record_state open[] = { RECORD_PENDING,
		RECORD_UNKNOWN, RECORD_DEAD_LETTER };
	struct open_counts c = { .s = s };
	enum rc rc;

	gauges_unknown(g);
	if ((rc = postgres_read(s, gauge_open, &c)) != RC_OK)
		return rc;
	*gauges_of(g, RECORD_IN_PROGRESS) = c.running;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		*gauges_of(g, open[i]) = c.key[open[i]].n;
	g->value[METRICS_OLDEST_UNKNOWN] =
	    gauges_age(c.key[RECORD_UNKNOWN].oldest, postgres_now(s)) / 1000;
	g->value[METRICS_IN_OUTBOX_PENDING] = c.effect[STORE_EFFECT_PENDING].n;
	g->value[METRICS_IN_OUTBOX_DEAD_LETTER] =
	    c.effect[STORE_EFFECT_DEAD_LETTER].n;
	g->value[METRICS_STORE_BYTES] = c.store_bytes;
	g->value[METRICS_KEPT_BYTES] = c.kept_bytes > 0 ? c.kept_bytes : 0;
	add_tally(s, g);
	return RC_OK;
}

/* --- tally ---------------------------------------------------------------- */

/* Works on a copy, since it may run several times. */
static enum rc
tally_run(struct pg *pg, void *arg)
{
	struct postgres_walk *w = arg, next = *w;
	enum rc rc;

	rc = next.keys_done
	    ? postgres_count_delivered(
		  pg, &next.at, TALLY_ROWS, &next.delivered)
	    : postgres_count_aged(pg, &next.at, TALLY_ROWS, &next.keys);
	if (rc == RC_OK)
		*w = next;
	return rc;
}

/* The tally is complete: its numbers become the current ones. */
static void
tally_ends(struct store *s)
{
	struct postgres_tally *t = &s->tally;

	lock_take(&s->lock);
	t->last = t->walk.keys;
	t->last_delivered = t->walk.delivered;
	t->counted = true;
	lock_give(&s->lock);
	memset(&t->walk, 0, sizeof(t->walk));
}

enum rc
postgres_tally(struct store *s, bool *done)
{
	struct postgres_walk *w = &s->tally.walk;
	enum rc rc;

	*done = false;
	rc = postgres_look(s, tally_run, w);
	if (rc != RC_NOTFOUND)
		return rc;
	*done = w->keys_done;
	if (w->keys_done) {
		tally_ends(s);
	} else {
		w->keys_done = true;
		w->at = 0;
	}
	return RC_OK;
}

/* --- pages ---------------------------------------------------------------- */

struct few {
	struct postgres_aged keys;
	bool all;
};

static enum rc
few_run(struct pg *pg, void *arg)
{
	struct postgres_aged more = { 0 };
	struct few *f = arg;
	int64_t at = 0;
	enum rc rc;

	memset(f, 0, sizeof(*f));
	rc = postgres_count_aged(pg, &at, WINDOW, &f->keys);
	if (rc == RC_OK)
		rc = postgres_count_aged(pg, &at, 1, &more);
	f->all = rc == RC_NOTFOUND;
	return f->all ? RC_OK : rc;
}

/* In a larger store these are as of the last tally.  False: there is none, or
 * it has found so few that they are counted now. */
static bool
count_tallied(struct store *s, struct postgres_aged *keys)
{
	bool counted;

	lock_take(&s->lock);
	counted = s->tally.counted;
	*keys = s->tally.last;
	lock_give(&s->lock);
	return counted &&
	    keys->completed + keys->failed_retryable + keys->expired > WINDOW;
}

enum rc
postgres_browse_count(struct store *s, struct store_browse_counts *c)
{
	static const enum record_state open[] = { RECORD_PENDING,
		RECORD_IN_PROGRESS, RECORD_UNKNOWN, RECORD_DEAD_LETTER };
	struct store_browse b = { 0 };
	struct store_found found;
	struct few f = { 0 };
	enum rc rc = RC_OK;
	bool known;

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		b.state = open[i];
		if ((rc = postgres_browse(s, &b, &found)) != RC_OK)
			return rc;
		c->keys[open[i]] = found.count;
		c->more[open[i]] = !found.all;
	}
	known = count_tallied(s, &f.keys);
	if (!known) {
		if ((rc = postgres_read(s, few_run, &f)) != RC_OK)
			return rc;
		known = f.all;
	}
	c->keys[RECORD_COMPLETED] = known ? f.keys.completed : -1;
	c->keys[RECORD_FAILED_RETRYABLE] = known ? f.keys.failed_retryable : -1;
	c->keys[RECORD_EXPIRED] = known ? f.keys.expired : -1;
	return RC_OK;
}
