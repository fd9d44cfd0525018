/*
 * A response and the bytes that it points into: what is sent to the web
 * server.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <string.h>

#include "buf.h"
#include "limit.h"
#include "response.h"
#include "spool.h"

/* The most bytes of one exchange_write(). */
#define ANSWER_PART (64 * 1024)

struct answer {
	struct response response;
	struct spool *spool; /* the bytes of response.body, or NULL */
	struct buf text;     /* or these: a problem, a small stored body */
};

static inline void
answer_init(struct answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	response_init(&answer->response);
	buf_init(&answer->text, LIMIT_PROBLEM);
}

/* Frees the bytes and leaves an empty answer. */
static inline void
answer_free(struct answer *answer)
{
	response_free(&answer->response);
	spool_free(answer->spool);
	buf_free(&answer->text);
	answer_init(answer);
}

#endif
