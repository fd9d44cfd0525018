/*
 * A request is claimed by compare-and-set, so several processes may share the
 * queue.  It is then an attempt like any other.  If the attempt is lost, or its
 * handler cannot be started, and its key is released, the request is queued
 * again: no client would retry it.  A request that got a response from its
 * handler is not queued again, whatever the response: its client reads the
 * response, and may retry.
 */
#include "config.h"

#include <string.h>

#include "attempt.h"
#include "clock.h"
#include "decide.h"
#include "fault.h"
#include "limit.h"
#include "log.h"
#include "uuid.h"
#include "work.h"

static bool
is_async(const struct conf_route *route)
{
	return route->async != CONF_ASYNC_NEVER ||
	    route->concurrent == CONF_CONCURRENT_ACCEPT;
}

/* Even without an asynchronous route, requests may be left in the queue. */
static struct work_terms
runner_terms(const struct conf *conf)
{
	bool any = is_async(&conf->defaults);

	for (size_t i = 0; i < conf->nroutes; i++)
		any = any || is_async(&conf->routes[i]);
	return (struct work_terms){ conf->async_workers, any };
}

/* RC_LOST: another process claimed it. */
static enum rc
runner_claim(struct attempt_request *job)
{
	struct attempt *at = &job->attempt;
	struct store_reservation rv;
	enum rc rc;

	attempt_request_begin(job);
	memset(&rv, 0, sizeof(rv));
	attempt_terms(at->rule, &rv);
	if ((rc = attempt_prepare(at, &rv)) != RC_OK)
		return rc;
	at->facts.acted_before = outcome_may_have_acted(&job->key);
	return store_job_start(at->store, &job->key, &rv, &at->lease);
}

static enum rc
runner_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	struct attempt_request *job = attempt_request_new(self, conf);
	enum rc rc;

	if (job == NULL)
		return RC_NOMEM;
	rc = store_job_next(self, &job->key);
	if (rc == RC_NOTFOUND && job->key.queued_at != 0)
		*wake = work_wake(self, job->key.queued_at, *wake);
	if (rc == RC_OK)
		rc = conf_is_retired(conf) ? RC_LOST : runner_claim(job);
	if (rc == RC_OK)
		*item = job;
	else
		attempt_request_free(job);
	return rc;
}

/* --- running ------------------------------------------------------------ */

/* Whether the attempt ended without a response from the program. */
static bool
was_cut_off(const struct attempt *at)
{
	return at->facts.run.end == RUN_NOT_STARTED ||
	    outcome_is_lost(&at->facts.run);
}

static void
runner_run(void *self, const struct conf *conf, void *item)
{
	struct attempt_request *job = item;
	struct attempt *at = &job->attempt;
	enum rc rc;

	(void)self;
	(void)conf;
	FAULT(JOB_CLAIMED);
	rc = attempt_request_load(job);
	if (rc == RC_OK)
		attempt_run(at);
	else {
		log_event(LOG_ERROR, "handler-not-started", &job->log,
		    LOG_S("why", rc_text(rc)));
		at->facts.run.end = RUN_NOT_STARTED;
	}
	attempt_judge(at);
	if (was_cut_off(at))
		at->record->requeue =
		    decide_requeue(at->lease.attempt, uuid_bits());
	attempt_complete(at);
	attempt_request_free(job);
}

const struct work_kind runner_kind = {
	.name = "pending",
	.terms = runner_terms,
	.next = runner_next,
	.run = runner_run,
};
