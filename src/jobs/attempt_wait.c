/*
 * Attempts of threads that may wait: those of the scheduler.
 */
#include "config.h"

#include <time.h>

#include "fault.h"
#include "metrics.h"
#include "run_wait.h"
#include "attempt.h"

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
