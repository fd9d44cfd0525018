/*
 * The status resource of a key, below status_path: how far a request is that
 * was answered with 202, and its answer.
 */
#ifndef STATUS_H
#define STATUS_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/*
 * 202, with the resource's place and its document.  Always leaves an answer:
 * without a document, if the store cannot be read.
 */
void status_accepted(struct store *, const struct conf *,
    const struct request *, const char *resource, struct answer *);

/* Always leaves an answer.  The path is below conf->status_path. */
void status_handle(struct store *, const struct conf *, const struct request *,
    struct answer *);

#endif
