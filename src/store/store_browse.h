/*
 * The key store's interface for pages that people look at: a few rows, and how
 * many more.  Everything that store.h says of functions, times and failures
 * applies here.
 *
 * Each call reads for a few milliseconds on a store of any size: it looks at a
 * bounded number of rows, by an index, and says whether that was all of them.
 */
#ifndef STORE_BROWSE_H
#define STORE_BROWSE_H

#include "store_operator.h"

#define STORE_BROWSE_ROWS 100

/* The keys to find. */
struct store_browse {
	const char *key, *downstream, *path; /* NULL: any */
	enum record_state state;             /* RECORD_NONE: any */
	int64_t before; /* only keys made before that one; 0: from the newest */
};

struct store_found {
	int64_t id[STORE_BROWSE_ROWS];
	size_t n;
	int64_t count; /* of all that were found, the first n included */
	bool all;      /* every row was looked at: count is the whole number */
	/* a `before` to look further; 0: nothing is left, or count is all that
	 * is told */
	int64_t next;
};

/*
 * Finds keys: of one open state the oldest change first, else the newest key
 * first.
 */
enum rc store_browse(struct store *s, const struct store_browse *what,
    struct store_found *found);

/* Finds the effects of a key; or, with key_id 0, those that were given up. */
enum rc store_browse_effects(
    struct store *s, int64_t key_id, struct store_found *found);

/*
 * Reads a key, and the head of its response (initialised by the caller; NULL:
 * not wanted).  RC_NOTFOUND.  The caller frees the record.  If the key has no
 * response that can be replayed, or it makes no sense, the head has no fields.
 */
enum rc store_browse_key(
    struct store *s, int64_t id, struct record *key, struct response *head);

/* Reads an effect, which the caller frees.  RC_NOTFOUND. */
enum rc store_browse_effect(struct store *s, int64_t id, struct effect *effect);

struct store_browse_counts {
	int64_t keys[RECORD_NSTATES]; /* -1: not counted yet */
	/* there are more than that many */
	bool more[RECORD_NSTATES];
};

/* Counts the keys by state: as store_gauges(), but up to a bound. */
enum rc store_browse_count(struct store *s, struct store_browse_counts *counts);

#endif
