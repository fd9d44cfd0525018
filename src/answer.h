/*
 * What goes back to the web server.  Either response is the whole answer, or
 * stream is a running handler whose output is handed on as it comes.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "conf.h"
#include "problem.h"
#include "request.h"
#include "response.h"
#include "run.h"
#include "spool.h"

struct answer {
	struct response response;
	struct spool *spool; /* what response.body points into, or NULL */
	struct buf text;     /* or this: a problem, a small stored body */
	struct run *stream;  /* its reader calls run_finish(), sets it NULL */
};

void answer_init(struct answer *);

/* Leaves an empty answer; not while there is a stream. */
void answer_free(struct answer *);

/* An answer of our own, logged.  Fills in problem->instance. */
void answer_problem(struct answer *, struct problem *, const struct conf *,
    const struct request *);

/* The same for a code that needs no more than a sentence. */
void answer_refuse(struct answer *, enum problem_code, const char *detail,
    const struct conf *, const struct request *);

/* The answer to a stream that ended before its first byte. */
void answer_stream_failed(struct answer *, const struct run_facts *,
    const struct conf *, const struct request *);

#endif
