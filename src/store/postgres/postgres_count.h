/*
 * Counts of keys and of effects by their states.
 */
#ifndef POSTGRES_COUNT_H
#define POSTGRES_COUNT_H

#include "pg.h"
#include "store_outbox.h"

struct postgres_count {
	int64_t n;
	int64_t oldest; /* the first change of them (ms since 1970) */
	int64_t bytes;  /* of their responses */
};

/* Reads the result of the next statement, which has the columns state, count,
 * oldest and bytes.  A state without a row has 0; a row whose state is no word
 * of ours is not counted: doctor names it. */
enum rc postgres_count_keys(
    struct pg *pg, struct postgres_count counts[RECORD_NSTATES]);
enum rc postgres_count_effects(
    struct pg *pg, struct postgres_count counts[STORE_EFFECT_NSTATES]);

/* The states of keys that end by age. */
struct postgres_aged {
	int64_t completed, failed_retryable, expired;
};

/* Adds the counts of the next n keys after number *at; and moves *at.
 * RC_NOTFOUND: there are none. */
enum rc postgres_count_aged(
    struct pg *pg, int64_t *at, int64_t n, struct postgres_aged *sum);

/* The same for delivered effects. */
enum rc postgres_count_delivered(
    struct pg *pg, int64_t *at, int64_t n, int64_t *delivered);

#endif
