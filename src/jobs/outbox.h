/*
 * Delivers effects: takes the due effects from the store's outbox, runs the
 * program that the configuration names for their topic, and records the result.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include <stdatomic.h>

#include "store_outbox.h"
#include "work.h"

/*
 * Number of programs that run at once.  Most of the time they wait for another
 * server, so the number has little to do with processors.  With four, one
 * program that hangs, or one slow topic, does not stop the others; and four are
 * few enough for a small machine's memory and for a provider's limits.
 */
#define OUTBOX_PROGRAMS 4

/*
 * Lets handlers name the topics that the new configuration has a section for,
 * and no longer those that only the old one had.  old is NULL at the start:
 * then all other topics are removed, unless another process uses the store.
 */
enum rc outbox_topics(
    struct store *store, const struct conf *old, const struct conf *new);

struct outbox;

/* The store and *stop must outlive the outbox.  Once *stop is set, the end of a
 * try that cannot be recorded is not recorded again.  NULL: no memory. */
struct outbox *outbox_new(struct store *store, const atomic_bool *stop);
void outbox_free(struct outbox *box);

/* An item is a struct effect. */
extern const struct work_kind outbox_kind;

#endif
