/*
 * A batch of keys past their retention, in a transaction.
 */
#ifndef STORE_EXPIRE_H
#define STORE_EXPIRE_H

#include "store.h"
#include "tx.h"

/* Upper limit for the bodies that a batch deletes (bytes), which takes some
 * 5 ms. */
#define STORE_EXPIRE_BYTES (8 * 1024 * 1024)

/* The place of a key among those that end by age. */
struct expire_place {
	int64_t expires_at, id;
	enum record_state state; /* RECORD_NONE: before the first key */
};

struct expire_batch {
	struct expire_place from, to; /* of the rows that were read */
	int limit, n;
	struct store_change *changes; /* room for limit */
	bool more;                    /* there may be keys after that place */
};

/* Reads what the batch will read, without a lock: tx_body of a lookup.
 * RC_NOTFOUND: no key is due. */
enum rc store_expire_ahead(struct tx *tx, void *batch);

/* The batch.  Its changes are those of an earlier run, or none. */
enum rc store_expire_batch(struct tx *tx, void *batch);

#endif
