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
#include <sysexits.h>

#include "conf.h"
#include "outcome.h"

static struct outcome
outcome_problem(
    enum record_state state, enum problem_code code, const char *why)
{
	return (struct outcome){ .state = state, .problem = code, .why = why };
}

/* The handler's own response is sent. */
static struct outcome
outcome_response(enum record_state state, const char *why)
{
	return (struct outcome){ .state = state, .why = why };
}

/* The key is released because the run did nothing; that says nothing of the
 * attempts before it. */
static struct outcome
outcome_nothing(const struct outcome_facts *f, struct outcome outcome)
{
	outcome.state = RECORD_FAILED_RETRYABLE;
	outcome.nothing_happened = !f->acted_before;
	return outcome;
}

/* A lost handler may have acted or not.  It may go on from its last recovery
 * point once every process that it started has ended. */
static struct outcome
outcome_lost(const struct outcome_facts *f, const struct conf_route *rt,
    enum problem_code code, const char *why)
{
	const bool resume =
	    rt->on_crash == CONF_CRASH_RESUME && f->attempt_lock_gone;

	return outcome_problem(
	    resume ? RECORD_FAILED_RETRYABLE : RECORD_UNKNOWN, code, why);
}

/* The program exited with EX_TEMPFAIL: it did nothing, or undid it.  That
 * counts for every setting of exit_status, because no program exits so by
 * chance. */
static struct outcome
outcome_tempfail(const struct outcome_facts *f, bool has_response)
{
	struct outcome outcome =
	    outcome_response(RECORD_FAILED_RETRYABLE, "handler exited with 75");

	if (!has_response) {
		outcome = outcome_problem(RECORD_FAILED_RETRYABLE,
		    PROBLEM_HANDLER_FAILED,
		    "handler exited with 75 and no whole response");
		outcome.status = 503;
	}
	return outcome_nothing(f, outcome);
}

/* The program's output is no response, or it exited with a status other than
 * 0.  If it said completed or unknown before that, it may have acted. */
static struct outcome
judge_failed(
    const struct outcome_facts *f, const struct conf_route *rt, const char *why)
{
	const struct outcome failed =
	    outcome_problem(RECORD_UNKNOWN, PROBLEM_HANDLER_FAILED, why);

	if (rt->exit_status != CONF_EXIT_RELEASE ||
	    f->says == CGIHEAD_SAYS_COMPLETED ||
	    f->says == CGIHEAD_SAYS_UNKNOWN)
		return failed;
	return outcome_nothing(f, failed);
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
	struct outcome released;

	if (status == EX_TEMPFAIL)
		return outcome_tempfail(f, has_response);
	if (f->head != CGIHEAD_OK)
		return judge_failed(f, rt, cgihead_verdict_text(f->head));
	if (f->body_broken)
		return judge_failed(
		    f, rt, "body is not as long as its Content-Length");
	if (status != 0 && rt->exit_status != CONF_EXIT_IGNORE)
		return judge_failed(
		    f, rt, "handler exited with a status other than 0");
	if (f->says == CGIHEAD_SAYS_NOT_EXECUTED)
		return outcome_nothing(f,
		    outcome_response(
			RECORD_UNKNOWN, "handler says not-executed"));
	if (f->says == CGIHEAD_SAYS_UNKNOWN)
		return outcome_response(
		    RECORD_UNKNOWN, says_unknown(f, "handler says unknown"));
	if (f->says == CGIHEAD_SAYS_COMPLETED)
		return outcome_response(RECORD_COMPLETED, "");
	if (rt->outcome == CONF_OUTCOME_EXPLICIT &&
	    f->says != CGIHEAD_SAYS_STATUS)
		return outcome_response(
		    RECORD_UNKNOWN, "handler does not say its outcome");
	if (conf_status_in(&rt->ambiguous, f->status))
		return outcome_response(RECORD_UNKNOWN, "status is ambiguous");
	if (conf_status_in(&rt->release, f->status)) {
		released = outcome_response(
		    RECORD_FAILED_RETRYABLE, "status releases the key");
		return f->status / 100 == 4 ? outcome_nothing(f, released)
					    : released;
	}
	return outcome_response(RECORD_COMPLETED, "");
}

struct outcome
outcome_judge(const struct outcome_facts *f, const struct conf_route *rt)
{
	static const char *const losses[] = {
		[RUN_SIGNALED] = "handler was killed by a signal",
		[RUN_CUT] = "handler did not end its response",
		[RUN_TIMEOUT] = "handler ran into its timeout",
		[RUN_OUTPUT_LIMIT] = "handler wrote more than max_output",
		[RUN_DRAINED] = "handler did not end within drain_timeout",
		/* The captured output is not the whole output. */
		[RUN_CAPTURE_FAILED] = "handler's output could not be kept",
	};

	if (outcome_is_lost(&f->run))
		return outcome_lost(f, rt,
		    f->run.end == RUN_TIMEOUT ? PROBLEM_HANDLER_TIMEOUT
					      : PROBLEM_HANDLER_FAILED,
		    losses[f->run.end]);
	if (f->run.end == RUN_NOT_STARTED)
		return outcome_nothing(f,
		    outcome_problem(RECORD_FAILED_RETRYABLE,
			PROBLEM_HANDLER_NOT_STARTED,
			"handler could not be started"));
	return judge_exit(f, rt);
}

bool
outcome_may_have_acted(const struct record *r)
{
	return r->attempt > 0 && record_has_fingerprint(r);
}

bool
outcome_is_lost(const struct run_facts *run)
{
	return run->end != RUN_EXITED && run->end != RUN_NOT_STARTED;
}

/* --- reconcilers ---------------------------------------------------------- */

struct outcome
outcome_no_verdict(int tries, unsigned most, const char *why)
{
	return outcome_response(
	    tries >= (int)most ? RECORD_DEAD_LETTER : RECORD_UNKNOWN, why);
}

/* What it says is its verdict: neither the response's status nor settings of
 * the handler count. */
struct outcome
outcome_reconcile(const struct outcome_facts *f, int tries, unsigned most)
{
	const char *why = "the reconciler's answer is no verdict";

	if (f->run.end == RUN_NOT_STARTED)
		why = "the reconciler could not be started";
	else if (f->run.end != RUN_EXITED || f->run.exit_status != 0)
		why = "the reconciler failed";
	else if (f->head != CGIHEAD_OK)
		why = cgihead_verdict_text(f->head);
	else if (f->says == CGIHEAD_SAYS_COMPLETED && !f->body_broken)
		return outcome_response(
		    RECORD_COMPLETED, "the reconciler says completed");
	else if (f->says == CGIHEAD_SAYS_NOT_EXECUTED)
		return outcome_response(RECORD_FAILED_RETRYABLE,
		    "the reconciler says not-executed");
	else if (f->says == CGIHEAD_SAYS_UNKNOWN)
		why = says_unknown(f, "the reconciler says unknown");
	return outcome_no_verdict(tries, most, why);
}
