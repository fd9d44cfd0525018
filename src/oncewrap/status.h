/*
 * The status resource of a key, below status_path: the progress of a request
 * that was answered with 202, and its response.
 */
#ifndef STATUS_H
#define STATUS_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/*
 * Makes the 202 response, with the resource's location and its document.
 * Always fills in the answer: without a document, if the store cannot be read.
 */
void status_accepted(struct store *store, const struct conf *conf,
    const struct request *rq, const char *resource, struct answer *answer);

/* Always fills in the answer.  The path is below conf->status_path. */
void status_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer);

#endif
