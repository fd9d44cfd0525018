/*
 * A kind of work that the scheduler has done when it is due.
 */
#ifndef WORK_H
#define WORK_H

#include "clock.h"
#include "conf.h"
#include "store.h"

struct work_terms {
	/* The number of items that may run at once; 0: no look is made. */
	unsigned limit;
	/* Whether work of this kind can be expected, from other processes too.
	 * If not, the scheduler still looks for what is left, but not while
	 * all its threads run something. */
	bool expected;
};

/*
 * What the scheduler must know of it.  Helpers call next() and run().  There is
 * one look at a time, so next() needs no lock.  run() may be called by several
 * threads at once, each with an item of its own.
 */
struct work_kind {
	const char *name; /* for the log */
	int64_t rest;     /* the shortest time between two vain looks (ms) */

	/* By a configuration. */
	struct work_terms (*terms)(const struct conf *conf);

	/*
	 * Claims the next item that is due.  RC_OK: run() is called with *item,
	 * exactly once.  RC_LOST: nothing is left to run, and the next item may
	 * be due; or the configuration was retired before the claim.
	 * RC_NOTFOUND: no item is due; *wake (mono) becomes the time when one
	 * is, if that is earlier.  Other values: the look failed.
	 */
	enum rc (*next)(
	    void *self, const struct conf *conf, void **item, int64_t *wake);

	/* Runs the item to its end, records the result, and frees it. */
	void (*run)(void *self, const struct conf *conf, void *item);
};

/* Accepted requests (runner.c); its self is the struct store. */
extern const struct work_kind runner_kind;

/* The monotonic clock at that store time, or most if that is earlier. */
static inline int64_t
work_wake(const struct store *store, int64_t store_time, int64_t most)
{
	const int64_t left = store_time - store_now(store);
	const int64_t now = clock_mono();

	return left < most - now ? now + left : most;
}

#endif
