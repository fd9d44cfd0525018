/*
 * Work that is due, for the loop:
 *
 * 	next due -> claim -> run -> record
 *
 * There are five kinds of work: maintenance of the store, accepted requests,
 * keys to reconcile, effects to deliver, and what an operator is to be told.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "clock.h"
#include "conf.h"
#include "loop.h"
#include "store.h"

/* --- a kind of work ----------------------------------------------------- */

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

/* --- the scheduler ------------------------------------------------------- */

struct scheduler;

struct scheduler_owner {
	struct loop *loop;
	/* is called when the last item has ended after scheduler_halt() */
	void (*ended)(void *arg);
	void *arg;
};

/* Begins with the loop's next round.  The scheduler takes a reference to the
 * configuration; the store and the loop must outlive the scheduler.  RC_NOMEM,
 * RC_IO: no memory, no descriptor or no thread. */
enum rc scheduler_start(struct scheduler **out, struct conf *conf,
    struct store *store, const struct scheduler_owner *owner);

/* Replaces the configuration, to which the scheduler takes a reference.  What
 * is under way keeps the configuration that it began with. */
void scheduler_reload(struct scheduler *s, struct conf *conf);

/* Begins no more passes, batches or programs. */
void scheduler_halt(struct scheduler *s);

/* Whether it was halted, and nothing is under way. */
bool scheduler_ended(const struct scheduler *s);

/* Nothing is under way, and the loop does not go round any more; NULL is
 * allowed. */
void scheduler_free(struct scheduler *s);

#endif
