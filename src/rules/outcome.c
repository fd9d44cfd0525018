/*
 * The end of a handler -> the new state of its key, and the response.
 *
 * The first condition that holds decides, so their order is the rule:
 *
 *  -  A lost program comes before its output: a response may be incomplete if
 *     its program was killed.
 *  -  A response that is missing or broken can neither be sent nor stored.
 *  -  Then the exit status, which the program sets last; then the field
 *     Idempotency-Outcome; then the meaning of the response's status.
 *
 * A run is unknown unless it is known to have left nothing behind: a key is
 * released only if the program, or the system that could not start it, says
 * so.
 */
#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sysexits.h>

#include "conf.h"
#include "outcome.h"

/* The .why of a key of which no attempt has started its handler. */
static const char never_started[] = "handler could not be started";

static struct outcome
problem(enum record_state state, enum problem_code code, const char *why)
{
	return (struct outcome){ state, code, 0, why };
}

/* The handler's own response is sent. */
static struct outcome
response(enum record_state state, const char *why)
{
	return (struct outcome){ state, PROBLEM_NONE, 0, why };
}

/* A lost handler may have acted or not.  It may go on from its last recovery
 * point once every process that it started has ended. */
static struct outcome
lost(const struct outcome_facts *f, const struct conf_route *rt,
    enum problem_code code, const char *why)
{
	const bool resume =
	    rt->on_crash == CONF_CRASH_RESUME && f->attempt_lock_gone;

	return problem(
	    resume ? RECORD_FAILED_RETRYABLE : RECORD_UNKNOWN, code, why);
}

/* The program exited with EX_TEMPFAIL: it did nothing, or undid it.  That
 * counts for every setting of exit_status, because no program exits so by
 * chance. */
static struct outcome
tempfail(bool has_response)
{
	if (has_response)
		return response(
		    RECORD_FAILED_RETRYABLE, "handler exited with 75");
	return (struct outcome){ RECORD_FAILED_RETRYABLE,
		PROBLEM_HANDLER_FAILED, 503,
		"handler exited with 75 and no whole response" };
}

static const char *
says_unknown(const struct outcome_facts *f, const char *plainly)
{
	return f->doubt != NULL && f->doubt[0] != '\0' ? f->doubt : plainly;
}

/* The program exited by itself. */
static struct outcome
judge_exit(const struct outcome_facts *f, const struct conf_route *rt)
{
	const bool has_response = f->head == CGIHEAD_OK && !f->body_broken;
	const int status = f->run.exit_status;

	if (status == EX_TEMPFAIL)
		return tempfail(has_response);
	if (f->head != CGIHEAD_OK)
		return problem(RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED,
		    cgihead_verdict_text(f->head));
	if (f->body_broken)
		return problem(RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED,
		    "body is not as long as its Content-Length");
	if (status != 0 && rt->exit_status == CONF_EXIT_CHECK)
		return problem(RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED,
		    "handler exited with a status other than 0");
	if (f->says == CGIHEAD_SAYS_NOT_EXECUTED)
		return response(
		    RECORD_FAILED_RETRYABLE, "handler says not-executed");
	if (f->says == CGIHEAD_SAYS_UNKNOWN)
		return response(
		    RECORD_UNKNOWN, says_unknown(f, "handler says unknown"));
	if (f->says == CGIHEAD_SAYS_COMPLETED)
		return response(RECORD_COMPLETED, "");
	if (rt->outcome == CONF_OUTCOME_EXPLICIT)
		return response(
		    RECORD_UNKNOWN, "handler does not say its outcome");
	if (conf_status_in(&rt->ambiguous, f->status))
		return response(RECORD_UNKNOWN, "status is ambiguous");
	if (conf_status_in(&rt->release, f->status))
		return response(
		    RECORD_FAILED_RETRYABLE, "status releases the key");
	return response(RECORD_COMPLETED, "");
}

struct outcome
outcome_judge(const struct outcome_facts *f, const struct conf_route *rt)
{
	switch (f->run.end) {
	case RUN_NOT_STARTED:
		return problem(RECORD_FAILED_RETRYABLE,
		    PROBLEM_HANDLER_NOT_STARTED,
		    f->acted_before ? "handler could not be started again"
				    : never_started);
	case RUN_TIMEOUT:
		return lost(f, rt, PROBLEM_HANDLER_TIMEOUT,
		    "handler ran into its timeout");
	case RUN_SIGNALED:
		return lost(f, rt, PROBLEM_HANDLER_FAILED,
		    "handler was killed by a signal");
	case RUN_CUT:
		return lost(f, rt, PROBLEM_HANDLER_FAILED,
		    "handler did not end its response");
	case RUN_OUTPUT_LIMIT:
		return lost(f, rt, PROBLEM_HANDLER_FAILED,
		    "handler wrote more than max_output");
	case RUN_DRAINED:
		return lost(f, rt, PROBLEM_HANDLER_FAILED,
		    "handler did not end within drain_timeout");
	case RUN_CAPTURE_FAILED:
		/* The captured output is not the whole output. */
		return lost(f, rt, PROBLEM_HANDLER_FAILED,
		    "handler's output could not be kept");
	case RUN_EXITED:
		break;
	}
	return judge_exit(f, rt);
}

bool
outcome_may_have_acted(const struct record *r)
{
	return r->attempt > 0 &&
	    (r->state != RECORD_FAILED_RETRYABLE || r->last_error == NULL ||
		strcmp(r->last_error, never_started) != 0);
}

bool
outcome_is_lost(const struct run_facts *run)
{
	return run->end != RUN_EXITED && run->end != RUN_NOT_STARTED;
}
