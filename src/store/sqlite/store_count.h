/*
 * Counts of keys and of effects by their states.
 */
#ifndef STORE_COUNT_H
#define STORE_COUNT_H

#include "db.h"
#include "store_outbox.h"

struct store_count {
	int64_t n;
	int64_t oldest; /* the first change of them: wall clock (ms) */
	int64_t bytes;  /* of their responses */
};

/* Counts for each state; a state that the statement does not find has 0.  A
 * statement has the columns state, count, oldest and bytes. */
enum rc store_count_keys(
    struct db *db, enum query query, struct store_count counts[RECORD_NSTATES]);
enum rc store_count_effects(struct db *db, enum query query,
    struct store_count counts[STORE_EFFECT_NSTATES]);

/*
 * A walk along an index whose entries are a number, a state and the number of a
 * row, in parts.
 */
struct store_walk {
	int64_t at, id; /* the last entry that was counted */
	int state;
	int64_t sum[RECORD_NSTATES]; /* entries of each state */
};

/* Counts the next n entries; RC_NOTFOUND: these were the last. */
enum rc store_walk_keys(struct db *db, struct store_walk *w, int n);
enum rc store_walk_effects(struct db *db, struct store_walk *w, int n);

#endif
