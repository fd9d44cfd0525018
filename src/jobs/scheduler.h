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

#include "conf.h"
#include "loop.h"
#include "store.h"

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
