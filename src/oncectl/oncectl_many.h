/*
 * What is done to all keys that the options choose.
 */
#ifndef ONCECTL_MANY_H
#define ONCECTL_MANY_H

#include "oncectl.h"

/* The options that choose keys; one of them is enough. */
#define ONCECTL_MANY                                                    \
	(ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_OLDER | \
	    ONCECTL_PEER)

/* An act. */
struct oncectl_many {
	const char *name; /* in the log */
	const char *done; /* "forgotten": what the keys are then */
	enum record_state to;
	/* the states whose keys may be chosen; RECORD_NONE: any but
	 * in_progress */
	enum record_state states[2];
	size_t nstates;
	/* Acts on n keys, STORE_CHOSEN_MAX at most, and sets .done. */
	enum rc (*act)(struct store *s, struct store_chosen *keys, size_t n);
};

/*
 * Counts the keys first, and asks the operator.  What was counted is what is
 * acted on: the numbers of the rows are kept, and the store looks at each row
 * again, because a key may have changed while the question waited.  Returns the
 * exit status.
 */
int oncectl_many(struct oncectl *ctl, const struct oncectl_many *how);

#endif
