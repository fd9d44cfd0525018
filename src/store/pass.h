/*
 * What all passes have in common: they take turns, and log what they did.
 */
#ifndef PASS_H
#define PASS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "log.h"
#include "store.h"

/* How long one pass may keep the others waiting (ms). */
#define PASS_TURN 200

/* A pass, which may take several turns. */
struct pass {
	const atomic_bool *stop; /* ends it between two batches; or NULL */
	int64_t until;           /* mono: the end of this turn */
	int n;                   /* keys changed, in all turns so far */
	bool more;               /* the turn ended before the pass did */
};

/* Begins a turn that ends then (mono; INT64_MAX: with the pass).  If the pass
 * before it has ended this begins a new one. */
void pass_turn(struct pass *, int64_t until);

/* After a batch: whether there may be another one in this turn; sets more. */
bool pass_goes_on(struct pass *);

/* One line for each of n keys whose outcome changed. */
void
pass_log(enum log_level, const char *event, const struct store_change *, int n);

#endif
