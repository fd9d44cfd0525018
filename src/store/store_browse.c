/*
 * Searches.  An index, or the rows by their numbers, is walked for a bounded
 * time.  So a search costs the same on a store of any size, and no long read
 * keeps a write-ahead log from being reset.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "sealed.h"
#include "store_ops.h"
#include "uuid.h"

/*
 * A walk reads an index, or the rows by their numbers, in parts: as many rows
 * as can be told, then larger parts up to PART.  It ends after TIME (ms); or,
 * once the rows that can be told were found and others are only counted, after
 * COUNT_TIME.
 */
#define PART       8000
#define TIME       100
#define COUNT_TIME 15

/* Keys are made in the order of their numbers, but for the clocks of several
 * hosts, and for transactions that end in another order: by that much (ms), and
 * of that many neighbours not all are out of order. */
#define SLACK      INT64_C(120000)
#define NEIGHBOURS INT64_C(256)

/* A position in a list: the last row that was looked at.  What stands first
 * depends on the list; the second number is that of the row, but for PostgreSQL
 * and keys of one name, where both are the digest. */
struct position {
	int64_t a, b;
};

static const struct position first_position = { INT64_MIN, INT64_MIN };

static void
position_write(const struct position *at, char out[STORE_POSITION])
{
	snprintf(out, STORE_POSITION, "%" PRId64 ".%" PRId64, at->a, at->b);
}

static bool
position_parse(const char *text, struct position *at)
{
	char *end;

	errno = 0;
	at->a = strtoll(text, &end, 10);
	if (*end != '.' || end == text)
		return false;
	text = end + 1;
	at->b = strtoll(text, &end, 10);
	return *end == '\0' && end != text && errno == 0;
}

/* --- a walk --------------------------------------------------------------- */

/* How to go on from a position. */
struct walk {
	struct position at;
	void (*send)(struct tx *tx, struct walk *w, int64_t rows);
	const struct store_browsing *b;
	struct row_range range; /* of identities */
	int64_t low, high;      /* numbers of keys: not below, and below that */
	int64_t key_id;         /* of effects */
	bool by_number;         /* in the order of creation */
	bool uncounted;         /* it ends with the last row that is told */
};

static void
walk_row(struct store_found *found, const struct position *at, int64_t id)
{
	if (found->n < STORE_BROWSE_ROWS)
		found->id[found->n++] = id;
	/* where the rest of what was counted begins */
	if (found->n == STORE_BROWSE_ROWS && found->next[0] == '\0')
		position_write(at, found->next);
	found->count++;
}

/* Walks one part; *n is the number of its rows. */
static enum rc
walk_part(struct tx *tx, struct walk *w, struct store_found *found,
    int64_t rows, int64_t *n)
{
	bool matches;
	int64_t id;
	enum rc rc;

	w->send(tx, w, rows);
	*n = 0;
	rc = tx_result(tx);
	while (rc == RC_OK &&
	    (rc = tx_row(tx, "i?iii", &id, &matches, &w->at.a, &w->at.b,
		 &found->back_to)) == RC_OK) {
		++*n;
		if (!matches)
			continue;
		if (w->uncounted && found->n == STORE_BROWSE_ROWS)
			rc = RC_EXISTS; /* there are more */
		else
			walk_row(found, &w->at, id);
	}
	return rc;
}

static enum rc
walk_all(struct tx *tx, struct walk *w, struct store_found *found)
{
	const int64_t begin = clock_mono();
	int64_t rows = STORE_BROWSE_ROWS, n, took;
	enum rc rc;

	do {
		rc = walk_part(tx, w, found, rows, &n);
		found->all = rc == RC_NOTFOUND && n < rows;
		rows = rows < PART / 4 ? 4 * rows : PART;
		took = clock_mono() - begin;
	} while (rc == RC_NOTFOUND && !found->all &&
	    took < (found->next[0] == '\0' ? TIME : COUNT_TIME) &&
	    !(w->uncounted && found->next[0] != '\0'));
	if (rc != RC_NOTFOUND && rc != RC_EXISTS)
		return rc;
	if (found->all && found->count == (int64_t)found->n)
		found->next[0] = '\0';
	else if (!found->all && found->next[0] == '\0')
		position_write(&w->at, found->next);
	if (found->all || !w->by_number)
		found->back_to = 0;
	return RC_OK;
}

/* --- keys ----------------------------------------------------------------- */

/* What each of these statements has first: see $matches in queries.sql. */
#define FILTER "sss?ssuiii"
/* clang-format off */
#define FILTER_ARGUMENTS(b) \
	(b)->what->filter.key, (b)->what->filter.scope, \
	(b)->what->filter.path, (int)(b)->what->filter.below, \
	browse_state(b), (b)->what->filter.peer, \
	(b)->downstream[0] != '\0' ? (b)->downstream : NULL, \
	(b)->what->filter.from, \
	(b)->what->filter.to != 0 ? (b)->what->filter.to : INT64_MAX, \
	(b)->what->filter.since
/* clang-format on */

static const char *
browse_state(const struct store_browsing *b)
{
	const enum record_state state = b->what->filter.state;

	return state != RECORD_NONE ? record_state_name(state) : NULL;
}

static void
send_newest(struct tx *tx, struct walk *w, int64_t rows)
{
	tx_send(tx, TX_BROWSE_NEWEST, FILTER "iii", FILTER_ARGUMENTS(w->b),
	    w->at.b < w->high ? w->at.b : w->high, w->low, rows);
}

static void
send_oldest(struct tx *tx, struct walk *w, int64_t rows)
{
	tx_send(tx, TX_BROWSE_OLDEST, FILTER "iii", FILTER_ARGUMENTS(w->b),
	    w->at.b >= w->low ? w->at.b : w->low - 1, w->high, rows);
}

static void
send_running(struct tx *tx, struct walk *w, int64_t rows)
{
	tx_send(tx, TX_BROWSE_RUNNING, FILTER "ii", FILTER_ARGUMENTS(w->b),
	    w->at.b, rows);
}

static void
send_open(struct tx *tx, struct walk *w, int64_t rows)
{
	tx_send(tx, TX_BROWSE_OPEN, FILTER "iii", FILTER_ARGUMENTS(w->b),
	    w->at.a, w->at.b, rows);
}

static void
send_range(struct tx *tx, struct walk *w, int64_t rows)
{
	/* From the position on, instead of the first one. */
	for (int i = 0; i < 8 && w->at.a != INT64_MIN; i++) {
		w->range.first.number = w->at.a;
		w->range.first.bytes[i] =
		    (unsigned char)((uint64_t)w->at.a >> (56 - 8 * i));
		w->range.first.bytes[8 + i] =
		    (unsigned char)((uint64_t)w->at.b >> (56 - 8 * i));
	}
	tx_send(tx, TX_BROWSE_RANGE, FILTER "iiwwi", FILTER_ARGUMENTS(w->b),
	    w->at.a, w->at.b, &w->range.first, &w->range.last, rows);
}

/*
 * The number of the first key that was made at that time, or a lower one; as
 * far as keys are made in the order of their numbers.  A few lookups.
 */
static enum rc
find_time(struct tx *tx, int64_t wall, int64_t *number)
{
	int64_t low, high, middle, made, last;
	enum rc rc;

	tx_send(tx, TX_BROWSE_ENDS, "");
	if ((rc = tx_one(tx, "ii", &low, &high)) != RC_OK)
		return rc;
	if (low < 1)
		low = 1;
	while (low <= high) {
		middle = low + (high - low) / 2;
		tx_send(tx, TX_BROWSE_AT, "ii", middle, NEIGHBOURS);
		if ((rc = tx_one(tx, "ii", &made, &last)) != RC_OK)
			return rc;
		if (last != 0 && made < wall)
			low = middle + 1;
		else
			high = middle - 1;
	}
	*number = low;
	return RC_OK;
}

static enum rc
walk_by_number(struct tx *tx, struct store_browsing *b, struct walk *w)
{
	const struct store_filter *f = &b->what->filter;
	enum rc rc = RC_OK;

	w->by_number = true;
	w->send = b->what->oldest ? send_oldest : send_newest;
	w->low = 1;
	w->high = INT64_MAX;
	if (!b->what->oldest && b->what->after == NULL)
		w->at.b = INT64_MAX;
	if (f->from > 0 && !b->what->every)
		rc = find_time(tx, f->from - SLACK, &w->low);
	if (rc == RC_OK && f->to > 0 && !b->what->every)
		rc = find_time(tx, f->to + SLACK, &w->high);
	return rc == RC_OK ? walk_all(tx, w, b->found) : rc;
}

/* The key with the downstream key, by what that tells; RC_NOTFOUND: it may come
 * from a store of the other kind, or from an older oncewrap. */
static enum rc
find_told(const struct store_browsing *b, struct tx *tx, int64_t *id)
{
	struct row_range range;
	enum rc rc = store_sealed_range(
	    b->store, SEALED_DOWNSTREAM, b->downstream, &range);

	if (rc != RC_OK)
		return rc;
	tx_send(
	    tx, TX_FIND_TOLD, "wwu", &range.first, &range.last, b->downstream);
	return tx_one(tx, "i", id);
}

static bool
is_open_state(enum record_state state)
{
	return state == RECORD_PENDING || state == RECORD_UNKNOWN ||
	    state == RECORD_DEAD_LETTER;
}

/* The first of these that applies decides: the rows that it finds are few. */
enum rc
store_browse_run(struct tx *tx, void *arg)
{
	struct store_browsing *b = arg;
	const struct store_browse *what = b->what;
	const struct store_filter *f = &what->filter;
	struct walk w = { .at = first_position,
		.b = b,
		.range = b->range,
		.uncounted = what->oldest };
	enum rc rc = RC_NOTFOUND;

	memset(b->found, 0, sizeof(*b->found));
	b->found->all = b->nothing;
	if (b->nothing)
		return RC_OK;
	if (what->after != NULL && !position_parse(what->after, &w.at))
		return RC_INVALID;
	if (b->downstream[0] != '\0' && what->after == NULL)
		rc = find_told(b, tx, &w.low);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	if (rc == RC_OK) {
		w.send = send_newest;
		w.at.b = w.high = w.low + 1;
	} else if (f->key != NULL || f->instance != NULL) {
		w.send = send_range;
	} else if (b->downstream[0] == '\0' && f->state == RECORD_IN_PROGRESS) {
		w.send = send_running;
	} else if (b->downstream[0] == '\0' && is_open_state(f->state)) {
		w.send = send_open;
	} else {
		return walk_by_number(tx, b, &w);
	}
	return walk_all(tx, &w, b->found);
}

enum rc
store_browse_begin(struct store_browsing *b, struct store *s,
    const struct store_browse *what, struct store_found *found)
{
	const struct store_filter *f = &what->filter;
	const struct store_identity key = { .key = f->key };
	enum rc rc = RC_OK;

	memset(b, 0, sizeof(*b));
	b->store = s;
	b->what = what;
	b->found = found;
	if (f->downstream != NULL && !uuid_copied(f->downstream, b->downstream))
		b->nothing = true;
	if (f->instance != NULL)
		rc = store_sealed_range(
		    s, SEALED_REFERENCE, f->instance, &b->range);
	else if (f->key != NULL)
		b->range = store_number(s, &key);
	if (rc == RC_NOTFOUND || rc == RC_INVALID) {
		b->nothing = true;
		rc = RC_OK;
	}
	return rc;
}

enum rc
store_browse(
    struct store *s, const struct store_browse *what, struct store_found *found)
{
	struct store_browsing b;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = store_browse_begin(&b, s, what, found);
	return rc == RC_OK ? store_tx(s, TX_READ, store_browse_run, &b) : rc;
}

/* --- effects -------------------------------------------------------------- */

struct effects_of {
	struct walk walk;
	struct store_found *found;
};

static void
send_effects(struct tx *tx, struct walk *w, int64_t rows)
{
	if (w->key_id == 0)
		tx_send(tx, TX_BROWSE_DEAD_EFFECTS, "ii", w->at.b, rows);
	else
		tx_send(tx, TX_BROWSE_EFFECTS, "iii", w->key_id, w->at.b, rows);
}

static enum rc
effects_run(struct tx *tx, void *arg)
{
	const struct effects_of *e = arg;
	struct walk w = e->walk;

	memset(e->found, 0, sizeof(*e->found));
	return walk_all(tx, &w, e->found);
}

enum rc
store_browse_effects(struct store *s, int64_t key_id, const char *after,
    struct store_found *found)
{
	struct effects_of e = {
		.walk = { .at = first_position,
		    .send = send_effects,
		    .key_id = key_id },
		.found = found,
	};

	memset(found, 0, sizeof(*found));
	if (after != NULL && !position_parse(after, &e.walk.at))
		return RC_INVALID;
	return store_tx(s, TX_READ, effects_run, &e);
}
