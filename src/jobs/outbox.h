/*
 * Delivers effects: takes the due effects from the store's outbox, runs the
 * program that the configuration names for their topic, and records the result.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "store_outbox.h"

/*
 * Number of programs that run at once.  Most of the time they wait for another
 * server, so the number has little to do with processors.  With four, one
 * program that hangs, or one slow topic, does not stop the others; and four are
 * few enough for a small machine's memory and for a provider's limits.
 */
#define OUTBOX_THREADS 4

/*
 * Lets handlers name the topics that the new configuration has a section for,
 * and no longer those that only the old one had.  old is NULL at the start:
 * then all other topics are removed, unless another process uses the store.
 */
enum rc
outbox_topics(struct store *, const struct conf *old, const struct conf *new);

struct outbox;

/* The store and *stop must outlive the outbox.  Once *stop is set, and
 * store_wake() called, the outbox takes no more effects and waits for none. */
struct outbox *outbox_new(struct store *, const atomic_bool *stop);
void outbox_free(struct outbox *);

/*
 * Takes a due effect, for outbox_try(); if there is none, waits for a while.
 * One thread at a time may call this.  RC_OK; RC_NOTFOUND: none is due yet; or
 * the reason why the store cannot tell.
 */
enum rc
outbox_take(struct outbox *, const struct conf *, struct store_effect *);

/* Tries the effect, with the configuration with which it was taken, and frees
 * what it holds.  At most OUTBOX_THREADS threads may call this at once. */
void outbox_try(struct outbox *, const struct conf *, struct store_effect *);

#endif
