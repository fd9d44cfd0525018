/*
 * Counts of the keys and effects, for operators, pages and metrics.
 *
 * The counts of a page and of metrics are cheap on a store of any size: states
 * with few keys in a healthy store are counted at each call, in an index that
 * holds no others.  States that end by age are counted now and then
 * (store_tally), in parts.
 */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "metrics.h"
#include "rows.h"
#include "store_files.h"
#include "store_ops.h"

/* Rows that one part of a tally reads: some milliseconds; and keys that are
 * counted at once. */
#define TALLY_ROWS 10000
#define FEW        20000

struct count {
	int64_t n;
	int64_t oldest; /* the first change of them: wall clock (ms) */
	int64_t bytes;  /* of their responses */
};

/*
 * Reads the next result, of a statement with the columns state, count, oldest
 * and bytes.  A state without a row has 0.  A row whose state is no word of
 * ours is not counted: doctor names it.
 */
static enum rc
count_states(struct tx *tx, struct count counts[RECORD_NSTATES])
{
	struct count c;
	const char *word;
	enum rc rc;
	int state;

	memset(counts, 0, RECORD_NSTATES * sizeof(counts[0]));
	if ((rc = tx_result(tx)) != RC_OK)
		return rc;
	while ((rc = tx_row(tx, "piii", &word, &c.n, &c.oldest, &c.bytes)) ==
	    RC_OK)
		if (word != NULL && rows_state(word, &state))
			counts[state] = c;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- all ------------------------------------------------------------------ */

static enum rc
stats_run(struct tx *tx, void *arg)
{
	struct count keys[RECORD_NSTATES];
	struct store_counts *c = arg;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	tx_send(tx, TX_COUNTS, "");
	tx_send(tx, TX_ALL_ROWS, "");
	tx_send(tx, TX_STORE_BYTES, "");
	rc = count_states(tx, keys);
	if (rc == RC_OK)
		rc = tx_one(tx, "ii", &c->key_rows, &c->effect_rows);
	if (rc == RC_OK)
		rc = tx_one(tx, "i", &c->database_bytes);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES && rc == RC_OK; i++) {
		c->keys[i] = keys[i].n;
		c->answer_bytes += keys[i].bytes;
	}
	if (rc == RC_OK)
		c->oldest_unknown_wall = keys[RECORD_UNKNOWN].oldest;
	return rc;
}

enum rc
store_stats(struct store *store, struct store_counts *c)
{
	const char *file = store_base(store)->file;
	enum rc rc;

	rc = store_tx(store, TX_READ, stats_run, c);
	c->wal_bytes = -1; /* a server's log is not the store's own */
	if (file != NULL) {
		c->database_bytes = store_files_size(file, "");
		c->wal_bytes = store_files_size(file, "-wal");
	}
	return rc;
}

/* --- by scope ------------------------------------------------------------- */

#define STATE(state, name)                           \
	{ name, 'i',                                 \
		offsetof(struct store_scope, keys) + \
		    (state) * sizeof(int64_t),       \
		sizeof(int64_t), NULL },

/* No key is in the first state, RECORD_NONE. */
static const struct row_member scope_members[] = {
	RECORD_STATES(STATE) ROW_MEMBER('s', store_scope, scope),
};
static const struct row_member *const scope_columns = scope_members + 1;
#define NSCOPE (sizeof(scope_members) / sizeof(scope_members[0]) - 1)

struct scopes {
	const char *after;
	struct store_scope *scopes;
	size_t max, n;
};

static enum rc
scopes_run(struct tx *tx, void *arg)
{
	struct scopes *l = arg;
	struct store_scope *sc;
	enum rc rc;

	store_scopes_free(l->scopes, l->n);
	l->n = 0;
	tx_send(tx, TX_SCOPES, "si", l->after, (int64_t)l->max);
	rc = tx_result(tx);
	while (rc == RC_OK && l->n < l->max && (rc = tx_next(tx)) == RC_OK) {
		sc = &l->scopes[l->n];
		memset(sc, 0, sizeof(*sc));
		rc = tx_members(tx, scope_columns, NSCOPE, sc);
		if (rc == RC_OK)
			l->n++;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_scopes(struct store *s, const char *after, struct store_scope *scopes,
    size_t max, size_t *n)
{
	struct scopes l = { after, scopes, max, 0 };
	enum rc rc = store_tx(s, TX_READ, scopes_run, &l);

	if (rc != RC_OK) {
		store_scopes_free(scopes, l.n);
		l.n = 0;
	}
	*n = l.n;
	return rc;
}

/* --- a walk --------------------------------------------------------------- */

/*
 * Counts the next keys, or effects; RC_NOTFOUND: there are no more.  Each row
 * is the last of n in its state.  A state that is no word of ours is not
 * counted: doctor names it.  Works on a copy, since it may run several times.
 */
static enum rc
walk_run(struct tx *tx, void *arg)
{
	struct store_walk *walk = arg, w = *walk;
	bool (*const parse)(const char *, int *) =
	    w.effects ? rows_effect_state : rows_state;
	const char *word = w.effects
	    ? effect_state_name((enum effect_state)w.state)
	    : record_state_name((enum record_state)w.state);
	int64_t n, rows = 0;
	enum rc rc;

	tx_send(tx, w.effects ? TX_TALLY_EFFECTS : TX_TALLY, "isid", w.at, word,
	    w.id, w.rows);
	rc = tx_result(tx);
	while (rc == RC_OK &&
	    (rc = tx_row(tx, "ipii", &w.at, &word, &w.id, &n)) == RC_OK) {
		rows += n;
		if (word == NULL || !parse(word, &w.state))
			continue;
		if (!w.effects)
			w.sum.keys[w.state] += n;
		else if (w.state == EFFECT_DELIVERED)
			w.sum.delivered += n;
	}
	if (rc != RC_NOTFOUND || rows == 0)
		return rc;
	*walk = w;
	return RC_OK;
}

/* --- the tally ------------------------------------------------------------ */

static struct store_tally *
tally_of(struct store *s)
{
	return &store_base(s)->tally;
}

/* Those of the last complete tally; false: there is none yet. */
static bool
stats_tallied(struct store *s, struct store_aged *aged)
{
	const struct store_tally *t = tally_of(s);
	bool counted;

	lock_take(store_base(s)->lock);
	*aged = t->last;
	counted = t->counted;
	lock_give(store_base(s)->lock);
	return counted;
}

/* The tally is complete: its numbers become the current ones. */
static void
tally_ends(struct store *s, struct store_tally *t)
{
	lock_take(store_base(s)->lock);
	t->last = t->walk.sum;
	t->counted = true;
	lock_give(store_base(s)->lock);
	memset(&t->walk, 0, sizeof(t->walk));
}

enum rc
store_tally(struct store *s, bool *done)
{
	struct store_tally *t = tally_of(s);
	const bool effects = t->walk.effects;
	enum rc rc;

	t->walk.rows = TALLY_ROWS;
	rc = store_tx(s, TX_LOOK, walk_run, &t->walk);
	*done = rc == RC_NOTFOUND && effects;
	if (rc != RC_NOTFOUND)
		return rc;
	if (effects) {
		tally_ends(s, t);
		return RC_OK;
	}
	t->walk.effects = true;
	t->walk.at = t->walk.id = 0;
	t->walk.state = 0;
	return RC_OK;
}

/* --- gauges --------------------------------------------------------------- */

struct open_counts {
	int64_t leases_from;
	struct count key[RECORD_NSTATES];
	int64_t running, pending, dead, kept_bytes, store_bytes;
};

static enum rc
gauges_run(struct tx *tx, void *arg)
{
	struct open_counts *c = arg;
	enum rc rc;

	tx_send(tx, TX_GAUGE_RUNNING, "i", c->leases_from);
	tx_send(tx, TX_GAUGE_OPEN, "");
	tx_send(tx, TX_GAUGE_OUTBOX, "");
	tx_send(tx, TX_KEPT_BYTES, "");
	tx_send(tx, TX_STORE_BYTES, "");
	rc = tx_one(tx, "i", &c->running);
	if (rc == RC_OK)
		rc = count_states(tx, c->key);
	if (rc == RC_OK)
		rc = tx_one(tx, "ii", &c->pending, &c->dead);
	if (rc == RC_OK)
		rc = tx_one(tx, "i", &c->kept_bytes);
	if (rc == RC_OK)
		rc = tx_one(tx, "i", &c->store_bytes);
	return rc;
}

static bool
is_counted_by_age(enum record_state state)
{
	return state == RECORD_COMPLETED || state == RECORD_FAILED_RETRYABLE ||
	    state == RECORD_EXPIRED;
}

_Static_assert(METRICS_KEYS_EXPIRED == STORE_GAUGE_OF(RECORD_EXPIRED),
    "gauges in the order of the states");

/* The age (ms) of what changed at `then`, both wall clock (ms); 0 for a time
 * that makes no sense, or is yet to come: the clock may have been set back, and
 * the row may be corrupt. */
static int64_t
age_of(int64_t then, int64_t now)
{
	const int64_t age = then > 0 && then < ROW_TIME_MAX ? now - then : 0;

	return age > 0 ? age : 0;
}

enum rc
store_gauges(struct store *s, struct metrics_gauges *g)
{
	const int64_t now = store_wall(s, store_now(s));
	struct open_counts c;
	struct store_aged aged;
	bool known;
	enum rc rc;

	for (int id = 0; id < METRICS_N; id++)
		g->value[id] = -1;
	c.leases_from = store_base(s)->leases_from;
	if ((rc = store_tx(s, TX_READ, gauges_run, &c)) != RC_OK)
		return rc;
	known = stats_tallied(s, &aged);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++)
		if (!is_counted_by_age((enum record_state)i))
			g->value[STORE_GAUGE_OF(i)] = c.key[i].n;
		else if (known)
			g->value[STORE_GAUGE_OF(i)] = aged.keys[i];
	g->value[METRICS_KEYS_IN_PROGRESS] = c.running;
	g->value[METRICS_OLDEST_UNKNOWN] =
	    age_of(c.key[RECORD_UNKNOWN].oldest, now) / 1000;
	g->value[METRICS_IN_OUTBOX_PENDING] = c.pending;
	g->value[METRICS_IN_OUTBOX_DEAD_LETTER] = c.dead;
	g->value[METRICS_STORE_BYTES] = c.store_bytes;
	g->value[METRICS_KEPT_BYTES] = c.kept_bytes > 0 ? c.kept_bytes : 0;
	if (known)
		g->value[METRICS_IN_OUTBOX_DELIVERED] = aged.delivered;
	return RC_OK;
}

enum rc
store_gauges_of_few(struct store *s, struct metrics_gauges *g)
{
	struct store_walk walk = { .rows = FEW };
	int64_t keys = 0;
	enum rc rc;

	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++)
		if (is_counted_by_age((enum record_state)i))
			keys += g->value[STORE_GAUGE_OF(i)];
	if (keys > FEW)
		return RC_OK;
	rc = store_tx(s, TX_LOOK, walk_run, &walk);
	walk.rows = 1;
	if (rc == RC_OK)
		rc = store_tx(s, TX_LOOK, walk_run, &walk);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++)
		if (rc == RC_NOTFOUND &&
		    is_counted_by_age((enum record_state)i))
			g->value[STORE_GAUGE_OF(i)] = walk.sum.keys[i];
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
