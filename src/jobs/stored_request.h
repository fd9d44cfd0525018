/*
 * A stored request, for a program that runs without a client.  It has no
 * credentials, and the name in the log that it had when it came.
 */
#ifndef STORED_REQUEST_H
#define STORED_REQUEST_H

#include "request.h"
#include "store.h"

/* The variable with the name in the log, the last one of that name.  No program
 * gets it, as all of ONCE_*. */
#define KEPT_INSTANCE "ONCE_INSTANCE"

struct stored_request {
	struct request rq; /* valid until stored_request_free() */
	struct log_request log;
	struct buf text; /* names and values */
	struct param *params;
	struct spool *body;
};

/*
 * Reads the stored request of the key with that identity and number; the path
 * is borrowed.  RC_NOTFOUND: the key has none.  RC_CORRUPT: it is not a
 * request.  Other values: the store failed.  On failure rq has only its path
 * and its name in the log.  The caller calls stored_request_free() in any case.
 */
enum rc
stored_request_load(struct store *store, const struct store_identity *identity,
    int64_t id, struct stored_request *kept);
void stored_request_free(struct stored_request *kept);

#endif
