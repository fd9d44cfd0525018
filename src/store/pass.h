/*
 * What all passes share: they take turns, and they log each change of an
 * outcome.
 */
#ifndef PASS_H
#define PASS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "log.h"
#include "store.h"

/* The longest turn of a pass (ms) while other passes wait. */
#define PASS_TURN 200

/* One pass; it may take several turns. */
struct pass {
	const atomic_bool *stop; /* ends it after a batch; or NULL */
	int64_t until;           /* mono: the end of this turn */
	int n;                   /* keys changed, in all turns so far */
	bool more;               /* the turn ended, the pass did not */
};

/* Begins a turn that ends at `until` (mono; INT64_MAX: when the pass ends).  If
 * the previous pass is complete, this call begins a new pass. */
void pass_turn(struct pass *, int64_t until);

/* Called after each batch: returns whether the turn has time for another batch,
 * and sets more. */
bool pass_goes_on(struct pass *);

/* Logs one line for each of the n changes of an outcome. */
void
pass_log(enum log_level, const char *event, const struct store_change *, int n);

#endif
