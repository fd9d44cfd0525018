/*
 * The key store's outbox, for the threads that deliver effects.  Everything
 * that store.h says of functions, times and failures applies here.
 */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "effect.h"
#include "store.h"

/*
 * The effect of that topic that is due next, and its time.  The effects of one
 * key are tried one after the other, in the order of their insertion.
 * RC_NOTFOUND: there is none, or each waits for an earlier effect.
 */
enum rc store_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at);

/*
 * Takes the effect for a try.  The try is counted even if this process dies
 * during it.  Everything that was committed together with the effect is durable
 * when this returns.  RC_LOST: another thread or process has taken the effect.
 * While this process lives, no other tries it before store_effect_end().
 */
enum rc store_effect_begin(struct store *s, struct effect *effect);

/* The standard input of the effect's program; NULL if it is empty.  The caller
 * frees it. */
enum rc store_effect_payload(
    struct store *s, const struct effect *effect, struct spool **payload);

/* Ends the try.  RC_LOST: this process no longer owns the effect; nothing was
 * changed. */
enum rc store_effect_end(
    struct store *s, const struct effect *effect, const struct effect_end *end);

#endif
