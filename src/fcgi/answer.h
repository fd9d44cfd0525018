/*
 * A response and the bytes that it points into: what goes back to the web
 * server.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "buf.h"
#include "response.h"
#include "spool.h"

struct answer {
	struct response response;
	struct spool *spool; /* what response.body points into, or NULL */
	struct buf text;     /* or this: a problem, a small stored body */
};

void answer_init(struct answer *);

/* Leaves an empty answer. */
void answer_free(struct answer *);

#endif
