/*
 * Runs the program of an attempt, in a loop or in a thread that may wait.
 */
#include "config.h"

#include <assert.h>
#include <time.h>

#include "clock.h"
#include "fault.h"
#include "handler.h"
#include "log.h"
#include "metrics.h"
#include "run_wait.h"
#include "attempt.h"

/* Pauses (ms) between two looks for processes that a handler left behind.  The
 * attempt waits for their end until its deadline at most. */
#define ATTEMPT_LOCK_LOOK     5  /* doubled after each */
#define ATTEMPT_LOCK_LOOK_MAX 80 /* reading all processes takes a while */
#define ATTEMPT_LOCK_GRACE    200

int
attempt_left(struct attempt *at)
{
	const int64_t now = clock_mono();

	/* A process that could not be ended still lives, even if no mark shows
	 * it. */
	if (at->facts.run.left || (at->pause == 0 && at->held.fd == -1))
		return 0;
	store_attempt_release(&at->held);
	if (store_attempt_gone(at->store, &at->held)) {
		at->facts.attempt_lock_gone = true;
		return 0;
	}
	if (!at->left_told)
		log_event(LOG_INFO, "children-left", at->rq->log,
		    LOG_I("attempt", at->lease.attempt),
		    LOG_I("pid", store_attempt_process(at->store, &at->held)));
	at->left_told = true;
	if (run_is_draining() && !at->hurries) {
		at->hurries = true;
		if (at->until > now + ATTEMPT_LOCK_GRACE)
			at->until = now + ATTEMPT_LOCK_GRACE;
	}
	if (now >= at->until)
		return 0;
	at->pause = at->pause == 0              ? ATTEMPT_LOCK_LOOK
	    : at->pause < ATTEMPT_LOCK_LOOK_MAX ? at->pause * 2
						: at->pause;
	return at->pause;
}

bool
attempt_has_files(const struct attempt *at)
{
	return at->held.fd != -1 || at->held.lock != 0;
}

/* Says in the attempt's file which processes act for it. */
static bool
name_processes(struct attempt *at)
{
	const struct run *run = at->run;
	bool named = true;

	if (!run_stays(run)) {
		store_attempt_started(&at->held, run_pid(run));
		return true;
	}
	/* The processes of an application that oncewrap does not start are
	 * not known. */
	if (at->held.lock != 0 && run_pid(run) != -1)
		named = run_lock(run) != 0 &&
		    store_attempt_by(at->store, &at->held, run_lock(run)) ==
			RC_OK;
	FAULT(ATTEMPT_GIVEN);
	return named;
}

void
attempt_begin(struct attempt *at)
{
	const struct conf_program *program = &at->rule->handler;

	assert(at->lease.token[0] != '\0');
	at->lock_named = at->held.lock != 0;
	FAULT(HANDLER_START);
	/* After a timeout, processes need a moment to die of SIGKILL. */
	at->until = clock_mono() + program->timeout + program->kill_after +
	    ATTEMPT_LOCK_GRACE;
}

bool
attempt_start(struct attempt *at, const struct conf_program *program)
{
	const struct cgienv_once once = { .key = at->key,
		.scope = at->scope,
		.path = at->rq->path,
		.attempt = at->lease.attempt,
		.recovery_point = at->lease.recovery_point,
		.downstream_key = at->lease.downstream,
		.token = at->lease.token,
		.id = at->lease.id,
		.database = at->rule->share_database ? store_database(at->store)
						     : NULL };
	const struct handler_call call = { &once, at->held.fd,
		store_secret(at->store), &at->errors };

	at->facts.run.end = RUN_NOT_STARTED;
	if (store_attempt_begin(&at->held, once.token, once.id) == RC_OK)
		at->run = handler_start(program, at->rq, &call, &at->facts.run);
	return at->run != NULL;
}

bool
attempt_name(struct attempt *at)
{
	if (!name_processes(at)) {
		at->facts.run.end = RUN_NOT_STARTED;
		return false;
	}
	if (at->rule->share_database) {
		at->sharer.pid = run_pid(at->run);
		at->sharer.log = at->rq->log;
		store_share_begin(at->store, &at->sharer);
		at->shares = true;
	}
	return true;
}

void
attempt_output(struct attempt *at, const void *bytes, size_t n)
{
	FAULT(HANDLER_OUTPUT);
	if (at->captured == RC_OK && !run_wrote_too_much(at->run))
		at->captured = spool_write(at->output, bytes, n);
}

void
attempt_check_output(struct attempt *at)
{
	if (at->captured != RC_OK)
		run_fail_capture(at->run);
}

void
attempt_unshare(struct attempt *at)
{
	if (at->shares)
		store_share_end(at->store, &at->sharer);
	at->shares = false;
}

void
attempt_ran(struct attempt *at)
{
	struct run_facts *facts = &at->facts.run;

	run_finish(at->run, facts);
	at->run = NULL;
	if (at->captured != RC_OK)
		facts->end = RUN_CAPTURE_FAILED;
	attempt_unshare(at);
}

/* --- threads that may wait: those of the scheduler ----------------------- */

bool
attempt_capture(struct attempt *at, const struct conf_program *program)
{
	struct run_facts *facts = &at->facts.run;

	if (!attempt_start(at, program) ||
	    (at->run = run_wait_begin(at->run, facts)) == NULL)
		return false;
	if (attempt_name(at))
		run_wait_capture(at->run, at->output, facts);
	else
		run_wait_cancel(at->run);
	at->run = NULL;
	attempt_unshare(at);
	return facts->end != RUN_NOT_STARTED;
}

void
attempt_run(struct attempt *at)
{
	struct timespec pause = { 0, 0 };
	int ms;

	attempt_begin(at);
	if (!attempt_capture(at, &at->rule->handler))
		return;
	metrics_observe_route(at->rule->metrics, METRICS_HANDLER_SECONDS,
	    at->facts.run.milliseconds);
	FAULT(HANDLER_EXITED);
	if (!outcome_is_lost(&at->facts.run) ||
	    at->rule->on_crash != CONF_CRASH_RESUME)
		return;
	while ((ms = attempt_left(at)) > 0) {
		pause.tv_nsec = ms * 1000000L;
		nanosleep(&pause, NULL);
	}
}

void
attempt_complete(struct attempt *at)
{
	attempt_settle(at);
	at->recorded = store_finish(
	    at->store, &at->lease, at->rule->retention, &at->record, &at->done);
	attempt_settled(at);
}
