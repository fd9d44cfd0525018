/*
 * The one loop for work that is due:
 *
 * 	next due -> claim -> run -> record
 *
 * There are four kinds of work: maintenance of the store, accepted requests,
 * keys to reconcile, and effects to deliver.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "conf_current.h"
#include "store.h"

struct scheduler;

/* Starts the first thread.  The configuration and the store must outlive the
 * scheduler.  RC_NOMEM: no memory, or no thread. */
enum rc scheduler_start(struct scheduler **out,
    struct conf_current *conf_current, struct store *store);

/* Looks at the configuration again, which has changed. */
void scheduler_reload(struct scheduler *s);

/* Begins no more passes, batches or programs; does not wait. */
void scheduler_halt(struct scheduler *s);

/* Whether all threads have ended; true for NULL.  The last thread sends this
 * process SIGUSR1. */
bool scheduler_ended(const struct scheduler *s);

/* Halts the scheduler, waits for what is under way, and frees it. */
void scheduler_stop(struct scheduler *s);

#endif
