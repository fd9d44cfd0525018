/*
 * Answers from the record of a completed key, as every retry gets them.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/*
 * Gets the stored answer of a key into an initialised one, which a failure
 * leaves so.  small is what store_look() found with the record: if the answer
 * is there, it is taken; otherwise, or with NULL, it is read now.  Of an
 * unsealed record it is made durable first.  RC_NOTFOUND: it was deleted since.
 */
enum rc replay_fetch(struct store *, const struct store_identity *,
    const struct record *, struct store_small *small, struct answer *);

/* Makes a replay of what replay_fetch() has read. */
void replay_mark(struct store *, const struct conf_route *,
    const struct record *, struct answer *);

/* The answer of a key that completed without one that was kept. */
void replay_not_kept(const struct record *, const struct conf *,
    const struct request *, struct answer *);

/* Adds Idempotency-Expires: expires_at is store time, 0 for never. */
void replay_add_expires(struct store *, struct response *, int64_t expires_at);

#endif
