/*
 * The response to a request that was refused, or ran, now or before.  The
 * caller initialises the answer.
 */
#ifndef RESPOND_H
#define RESPOND_H

#include "answer.h"
#include "attempt.h"
#include "conf.h"
#include "problem.h"
#include "request.h"
#include "run.h"

/* Counts a problem that is sent, and logs it.  route: NULL if it is of none;
 * unknown: the answer is that the outcome is. */
void respond_count(const struct request *rq, struct metrics_route *route,
    enum problem_code code, bool unknown, const char *detail);

/* Makes a problem response, counts it and logs it.  Fills in
 * problem->instance. */
void respond_problem(struct answer *answer, struct problem *problem,
    const struct conf *conf, const struct request *rq);

/* The same for a code that needs only a sentence; detail NULL: the code's own
 * sentence. */
void respond_refuse(struct answer *answer, enum problem_code code,
    const char *detail, const struct conf *conf, const struct request *rq);

/* For a key that completed without a stored response. */
void respond_not_kept(struct answer *answer, const struct record *record,
    const struct conf *conf, const struct request *rq);

/* Logs that the request is answered with that status. */
void respond_log(const struct request *rq, const char *event, int status);

/*
 * Gets the stored response of a key, the same for every retry, into answer; a
 * failure leaves that empty.  found is the result of store_lookup(): its
 * response is taken if it has one.  Otherwise, or with NULL, the response is
 * read now.  For an unconfirmed record, its changes are made durable first.
 * RC_NOTFOUND: the key was deleted since.
 */
enum rc respond_fetch(struct store *store,
    const struct store_identity *identity, const struct record *record,
    struct store_inline_answer *found, struct answer *answer);

/* Adds the fields of a replay to that response. */
void respond_mark_replay(struct store *store, const struct conf_route *rule,
    const struct record *record, struct answer *answer);

/* For an attempt after attempt_complete(); takes its output. */
void respond_attempt(struct attempt *at, struct answer *answer);

/*
 * Answers to unguarded requests that got none from their program: a few words,
 * as web servers and fcgiwrap give them.  Problem documents are for callers
 * that send a key.
 */

/* The program could not be started: 404 if it is not there, 403 if it may not
 * be run or is a folder, else 502. */
void respond_not_started(struct answer *answer, const struct run_facts *facts,
    const struct request *rq);

/* The program ended without a byte of output, or with an output that begins
 * with an empty line: 502, or 504 after its timeout. */
void respond_no_answer(struct answer *answer, const struct run_facts *facts,
    const struct request *rq);

#endif
