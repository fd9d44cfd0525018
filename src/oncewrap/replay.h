/*
 * Responses from the record of a completed key, the same for every retry.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "answer.h"
#include "conf.h"
#include "store.h"

/*
 * Gets the stored response of a key into answer, which the caller has
 * initialised; a failure leaves it so.  found is the result of store_lookup():
 * its response is taken if it has one.  Otherwise, or with NULL, the response
 * is read now.  For an unconfirmed record, its changes are made durable first.
 * RC_NOTFOUND: the key was deleted since.
 */
enum rc replay_fetch(struct store *store, const struct store_identity *identity,
    const struct record *record, struct store_inline_answer *found,
    struct answer *answer);

/* Adds the fields of a replay to the response from replay_fetch(). */
void replay_mark(struct store *store, const struct conf_route *rule,
    const struct record *record, struct answer *answer);

/* Adds Idempotency-Expires: expires_at is store time, 0 for never. */
void replay_add_expires(
    struct store *store, struct response *response, int64_t expires_at);

#endif
