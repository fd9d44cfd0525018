/*
 * Answers to unguarded requests that got none from their program: a few words,
 * as web servers and fcgiwrap give them.  Problem documents are for callers
 * that send a key.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include "answer.h"
#include "outcome.h"
#include "request.h"

/* The program could not be started: 404 if it is not there, 403 if it may not
 * be run or is a folder, else 502. */
void plain_not_started(struct answer *answer, const struct run_facts *facts,
    const struct request *rq);

/* The program ended without a byte of output, or with an output that begins
 * with an empty line: 502, or 504 after its timeout. */
void plain_failed(struct answer *answer, const struct run_facts *facts,
    const struct request *rq);

#endif
