/*
 * The response to a request that was refused, or ran.  The caller initialises
 * the answer.
 */
#ifndef RESPOND_H
#define RESPOND_H

#include "answer.h"
#include "attempt.h"
#include "conf.h"
#include "problem.h"
#include "request.h"
#include "run.h"

/* Counts a problem that is sent, and logs it.  unknown: the answer is that the
 * outcome is. */
void respond_count(const struct request *rq, enum problem_code code,
    bool unknown, const char *detail);

/* Makes a problem response, counts it and logs it.  Fills in
 * problem->instance. */
void respond_problem(struct answer *answer, struct problem *problem,
    const struct conf *conf, const struct request *rq);

/* The same for a code that needs only a sentence; detail NULL: the code's own
 * sentence. */
void respond_refuse(struct answer *answer, enum problem_code code,
    const char *detail, const struct conf *conf, const struct request *rq);

/* Logs that the request is answered with that status. */
void respond_log(const struct request *rq, const char *event, int status);

/* For an attempt after attempt_complete(); takes its output. */
void respond_attempt(struct attempt *at, struct answer *answer);

#endif
