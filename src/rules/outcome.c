/*
 * What happened to a handler -> what becomes of its key, and what is answered.
 *
 * One table; the first row that fits decides, so the order of the rows is the
 * rule:
 *
 *  -  How the program was lost comes before anything it printed: an answer
 *     whose program was killed may be half of one.
 *  -  A response that is none, or broken, can neither be sent nor kept.
 *  -  Then the exit status, which the program sets last; then what the program
 *     says of the outcome in so many words; then what its status implies.
 *
 * Whatever is not known to have left nothing behind is unknown: a key is
 * released only where the program, or the system that could not start it,
 * says so.
 *
 * It must not know: how a program is run, how its output is parsed, or how a
 * problem looks.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <sysexits.h>

#include "conf.h"
#include "outcome.h"

typedef bool fits_fn(const struct outcome_facts *, const struct conf_route *);

static bool
not_started(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_NOT_STARTED;
}

static bool
timed_out(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_TIMEOUT;
}

static bool
signaled(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_SIGNALED;
}

static bool
output_limit(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_OUTPUT_LIMIT;
}

static bool
drained(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_DRAINED;
}

/* What was captured is not what was written: as good as killed. */
static bool
capture_failed(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.end == RUN_CAPTURE_FAILED;
}

static bool
no_head(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->head != CGIHEAD_OK;
}

static bool
broken(const struct outcome_facts *f, const struct conf_route *rt)
{
	return no_head(f, rt) || f->body_broken;
}

/* EX_TEMPFAIL counts whatever exit_status says: nobody exits so by chance. */
static bool
tempfail(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->run.exit_status == EX_TEMPFAIL;
}

static bool
tempfail_broken(const struct outcome_facts *f, const struct conf_route *rt)
{
	return tempfail(f, rt) && broken(f, rt);
}

static bool
exit_failed(const struct outcome_facts *f, const struct conf_route *rt)
{
	return f->run.exit_status != 0 && !tempfail(f, rt) &&
	    rt->exit_status == CONF_EXIT_CHECK;
}

static bool
says_not_executed(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->says == CGIHEAD_SAYS_NOT_EXECUTED;
}

static bool
says_unknown(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->says == CGIHEAD_SAYS_UNKNOWN;
}

static bool
says_completed(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)rt;
	return f->says == CGIHEAD_SAYS_COMPLETED;
}

static bool
ambiguous(const struct outcome_facts *f, const struct conf_route *rt)
{
	return conf_status_in(&rt->ambiguous, f->status);
}

static bool
release(const struct outcome_facts *f, const struct conf_route *rt)
{
	return conf_status_in(&rt->release, f->status);
}

static bool
always(const struct outcome_facts *f, const struct conf_route *rt)
{
	(void)f;
	(void)rt;
	return true;
}

/* The state of a handler that was lost: on_crash says it. */
#define PER_ON_CRASH RECORD_NONE

/* why NULL: the head's verdict says it. */
static const struct row {
	fits_fn *fits;
	struct outcome outcome;
} rows[] = {
	{ not_started,
	    { RECORD_FAILED_RETRYABLE, PROBLEM_HANDLER_NOT_STARTED, 0,
		"handler could not be started" } },
	/* lost: nobody knows how far it got */
	{ timed_out,
	    { PER_ON_CRASH, PROBLEM_HANDLER_TIMEOUT, 0,
		"handler ran into its timeout" } },
	{ signaled,
	    { PER_ON_CRASH, PROBLEM_HANDLER_FAILED, 0,
		"handler was killed by a signal" } },
	{ output_limit,
	    { PER_ON_CRASH, PROBLEM_HANDLER_FAILED, 0,
		"handler wrote more than max_output" } },
	{ drained,
	    { PER_ON_CRASH, PROBLEM_HANDLER_FAILED, 0,
		"handler did not end within drain_timeout" } },
	{ capture_failed,
	    { PER_ON_CRASH, PROBLEM_HANDLER_FAILED, 0,
		"handler's output could not be kept" } },
	/* it exited, but there is nothing to send */
	{ tempfail_broken,
	    { RECORD_FAILED_RETRYABLE, PROBLEM_HANDLER_FAILED, 503,
		"handler exited with 75 and no whole response" } },
	{ no_head, { RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED, 0, NULL } },
	{ broken,
	    { RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED, 0,
		"body is not as long as its Content-Length" } },
	/* the exit status */
	{ exit_failed,
	    { RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED, 0,
		"handler exited with a status other than 0" } },
	{ tempfail,
	    { RECORD_FAILED_RETRYABLE, PROBLEM_NONE, 0,
		"handler exited with 75" } },
	/* Idempotency-Outcome */
	{ says_not_executed,
	    { RECORD_FAILED_RETRYABLE, PROBLEM_NONE, 0,
		"handler says not-executed" } },
	{ says_unknown,
	    { RECORD_UNKNOWN, PROBLEM_NONE, 0, "handler says unknown" } },
	{ says_completed, { RECORD_COMPLETED, PROBLEM_NONE, 0, "" } },
	/* the status */
	{ ambiguous,
	    { RECORD_UNKNOWN, PROBLEM_NONE, 0, "status is ambiguous" } },
	{ release,
	    { RECORD_FAILED_RETRYABLE, PROBLEM_NONE, 0,
		"status releases the key" } },
	{ always, { RECORD_COMPLETED, PROBLEM_NONE, 0, "" } },
};

struct outcome
outcome_judge(const struct outcome_facts *f, const struct conf_route *rt)
{
	const struct row *w = rows;
	struct outcome out;

	while (!w->fits(f, rt))
		w++;
	/* Nothing below the lost rows is about a program that was lost. */
	assert(w->outcome.problem != PROBLEM_NONE || f->run.end == RUN_EXITED);
	out = w->outcome;
	/* It may go on from its last recovery point, once nothing that the
	 * lost attempt started can still act. */
	if (out.state == PER_ON_CRASH)
		out.state = rt->on_crash == CONF_CRASH_RESUME && f->tree_gone
		    ? RECORD_FAILED_RETRYABLE
		    : RECORD_UNKNOWN;
	if (out.why == NULL)
		out.why = cgihead_verdict_text(f->head);
	return out;
}

bool
outcome_is_lost(const struct run_facts *run)
{
	return run->end != RUN_EXITED && run->end != RUN_NOT_STARTED;
}
