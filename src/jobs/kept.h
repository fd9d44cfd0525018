/*
 * A request as it was kept with its key, for a program that runs without a
 * client: without credentials, and named anew in the log.
 */
#ifndef KEPT_H
#define KEPT_H

#include "request.h"
#include "store.h"

struct kept {
	struct request rq; /* lives as long as this */
	struct buf text;   /* names and values */
	struct param *params;
	struct spool *body;
};

/*
 * Reads the request of that key, which has that number; its path is borrowed.
 * RC_NOTFOUND: it has none.
 * RC_CORRUPT: not a request.  Or the store failed.  Then rq has its path and
 * its name in the log, and no more.  kept_free() in any case.
 */
enum rc kept_load(
    struct store *, const struct store_identity *, int64_t id, struct kept *);
void kept_free(struct kept *);

#endif
