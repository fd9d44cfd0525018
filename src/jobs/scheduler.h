/*
 * The one loop for work that is due:
 *
 * 	next due -> claim -> run -> record
 *
 * There are five kinds of work: maintenance of the store, accepted requests,
 * keys to reconcile, effects to deliver, and what an operator is to be told.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "conf.h"
#include "store.h"

struct scheduler;

/* Starts the first thread.  The scheduler takes a reference to the
 * configuration; the store must outlive the scheduler.  RC_NOMEM: no memory,
 * or no thread. */
enum rc
scheduler_start(struct scheduler **out, struct conf *conf, struct store *store);

/* Replaces the configuration, to which the scheduler takes a reference.  What
 * is under way keeps the configuration that it began with. */
void scheduler_reload(struct scheduler *s, struct conf *conf);

/* Begins no more passes, batches or programs; does not wait. */
void scheduler_halt(struct scheduler *s);

/* Whether all threads have ended; true for NULL.  The last thread sends this
 * process SIGUSR1. */
bool scheduler_ended(const struct scheduler *s);

/* Halts the scheduler, waits for what is under way, and frees it. */
void scheduler_stop(struct scheduler *s);

#endif
