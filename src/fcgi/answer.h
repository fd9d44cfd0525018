/*
 * A response and the bytes that it points into: what is sent to the web
 * server.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "buf.h"
#include "response.h"
#include "spool.h"

struct answer {
	struct response response;
	struct spool *spool; /* the bytes of response.body, or NULL */
	struct buf text;     /* or these: a problem, a small stored body */
};

void answer_init(struct answer *answer);

/* Frees the bytes and leaves an empty answer. */
void answer_free(struct answer *answer);

#endif
