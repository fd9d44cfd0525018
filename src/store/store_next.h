/*
 * What is due first: a job, or an effect.
 */
#ifndef STORE_NEXT_H
#define STORE_NEXT_H

#include "store_ops.h"

/* The read begins with this. */
struct store_next {
	/* Reads the first one after some others, which are left to other
	 * processes; sets the time when it is due, and what time it is.  Frees
	 * what it has read before. */
	tx_body *body;
	atomic_uint *lost; /* in a row, to other processes */
	int64_t skip, at, now;
};

/* RC_NOTFOUND: there is none.  The one that is read may not be due yet. */
enum rc store_next(struct store *s, struct store_next *n);

/* Counts the one that was tried: RC_LOST, another process has it. */
void store_next_taken(atomic_uint *lost, enum rc rc);

#endif
