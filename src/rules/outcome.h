/*
 * Facts of a run -> the new state of the key and the response: ordered
 * conditions, in outcome.c.
 */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdint.h>

#include "cgihead.h"
#include "conf.h"
#include "problem.h"
#include "record.h"

/* How the program ended. */
enum run_end {
	RUN_EXITED,
	RUN_SIGNALED,
	RUN_CUT, /* FastCGI: ended without END_REQUEST */
	RUN_TIMEOUT,
	RUN_OUTPUT_LIMIT,   /* wrote more than max_output */
	RUN_DRAINED,        /* did not end within drain_timeout */
	RUN_CAPTURE_FAILED, /* its output could not be stored: disk full */
	RUN_NOT_STARTED
};

struct run_facts {
	enum run_end end;
	int exit_status;      /* RUN_EXITED, RUN_CUT */
	int signal;           /* RUN_SIGNALED */
	int error;            /* RUN_NOT_STARTED: errno */
	int64_t milliseconds; /* from start to end */
	bool left;            /* SIGKILL did not end it: it may still run */
};

struct outcome_facts {
	/* an earlier attempt of the key may have acted */
	bool acted_before;
	struct run_facts run;
	bool attempt_lock_gone; /* no process of the attempt is left */
	enum cgihead_verdict head;
	bool body_broken; /* not as long as its Content-Length */
	int status;       /* of the response, if head is CGIHEAD_OK */
	enum cgihead_outcome says;
	const char *doubt; /* of cgihead.h, or NULL for "" */
};

struct outcome {
	enum record_state state;   /* COMPLETED FAILED_RETRYABLE UNKNOWN */
	enum problem_code problem; /* PROBLEM_NONE: the response itself */
	int status;                /* overrides the problem's, if not 0 */
	/* FAILED_RETRYABLE: neither this attempt nor one before it has done
	 * anything, so the key takes the fingerprint of the next request */
	bool nothing_happened;
	const char *why; /* for last_error and the log; static, or .doubt */
};

/* Whether the program was lost, so that on_crash decides about the key. */
bool outcome_is_lost(const struct run_facts *run);

/* Whether an attempt of the key may have acted.  None has if the key was
 * released because nothing happened. */
bool outcome_may_have_acted(const struct record *r);

struct outcome
outcome_judge(const struct outcome_facts *f, const struct conf_route *rt);

/*
 * A reconciler's try at a key that is unknown: COMPLETED, with the response
 * that it printed; FAILED_RETRYABLE; DEAD_LETTER; or UNKNOWN, to be tried
 * again.  tries: begun so far; most: of its route.
 */
struct outcome
outcome_reconcile(const struct outcome_facts *f, int tries, unsigned most);

/* The same for a try without a verdict, for that reason. */
struct outcome outcome_no_verdict(int tries, unsigned most, const char *why);

#endif
