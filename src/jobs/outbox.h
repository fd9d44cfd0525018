/*
 * Delivery of effects: takes what is due out of the store's outbox, runs the
 * program that the configuration names for its topic, and writes down how that
 * went.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "store_outbox.h"

/*
 * Programs that run at once.  Most of their time they wait for somebody else's
 * server, so this has little to do with processors: four let one that hangs,
 * or a topic whose provider does, take its time while others go on, and are
 * few enough for a small machine's memory and for a provider's manners.
 */
#define OUTBOX_THREADS 4

/*
 * Handlers may name the topics that the configuration has a section for, and
 * no longer those that only the one before it had.  old is NULL at the start:
 * then no longer any others, unless another process uses the store.
 */
enum rc
outbox_topics(struct store *, const struct conf *old, const struct conf *new);

struct outbox;

/* Both must outlive it.  Once *stop is set, and store_wake() called, nothing
 * more is taken and nothing waited for. */
struct outbox *outbox_new(struct store *, const atomic_bool *stop);
void outbox_free(struct outbox *);

/*
 * Takes an effect that is due, for outbox_try(); if none is, waits for a
 * while.  By one thread at a time.  RC_OK; RC_NOTFOUND: none for now; or why
 * the store cannot tell.
 */
enum rc
outbox_take(struct outbox *, const struct conf *, struct store_effect *);

/* Tries it, and frees what it holds; with the configuration that it was taken
 * by.  By as many threads as OUTBOX_THREADS at once. */
void outbox_try(struct outbox *, const struct conf *, struct store_effect *);

#endif
