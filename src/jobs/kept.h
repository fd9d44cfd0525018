/*
 * A stored request, for a program that runs without a client.  It has no
 * credentials, and it gets a new name in the log.
 */
#ifndef KEPT_H
#define KEPT_H

#include "request.h"
#include "store.h"

struct kept {
	struct request rq; /* valid until kept_free() */
	struct buf text;   /* names and values */
	struct param *params;
	struct spool *body;
};

/*
 * Reads the stored request of the key with that identity and number; the path
 * is borrowed.  RC_NOTFOUND: the key has none.  RC_CORRUPT: it is not a
 * request.  Other values: the store failed.  On failure rq has only its path
 * and its name in the log.  The caller calls kept_free() in any case.
 */
enum rc kept_load(
    struct store *, const struct store_identity *, int64_t id, struct kept *);
void kept_free(struct kept *);

#endif
