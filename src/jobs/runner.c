/*
 * A request is claimed by compare-and-set, so several processes may share the
 * queue.  It is then an attempt like any other.  If the attempt is lost, or its
 * handler cannot be started, and its key is released, the request is queued
 * again: no client would retry it.  A request that got a response from its
 * handler is not queued again, whatever the response: its client reads the
 * response, and may retry.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "clock.h"
#include "decide.h"
#include "fault.h"
#include "limit.h"
#include "log.h"
#include "route.h"
#include "uuid.h"
#include "scheduler.h"

/* A claimed request. */
struct job {
	struct record stored;
	struct attempt attempt;
};

static void
runner_job_free(struct job *job)
{
	attempt_free(&job->attempt);
	record_free(&job->stored);
	free(job);
}

/* --- claiming ----------------------------------------------------------- */

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
runner_claim(struct attempt *at, const struct record *job)
{
	struct store_reservation rv;
	enum rc rc;

	at->rule = route_find(at->conf, job->path);
	at->key = job->key;
	at->scope = job->scope;
	memset(&rv, 0, sizeof(rv));
	attempt_terms(at->rule, &rv);
	if ((rc = attempt_prepare(at, &rv)) != RC_OK)
		return rc;
	at->facts.acted_before = outcome_may_have_acted(job);
	return store_job_start(at->store, job, &rv, &at->lease);
}

static enum rc
runner_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	struct store *store = self;
	struct record stored;
	struct job *job;
	enum rc rc;

	if ((rc = store_job_next(store, &stored)) != RC_OK) {
		if (rc == RC_NOTFOUND && stored.queued_at != 0)
			*wake = work_wake(store, stored.queued_at, *wake);
		return rc;
	}
	if (conf_is_retired(conf)) {
		record_free(&stored);
		return RC_LOST;
	}
	if ((job = calloc(1, sizeof(*job))) == NULL) {
		record_free(&stored);
		return RC_NOMEM;
	}
	job->stored = stored;
	attempt_init(&job->attempt);
	job->attempt.store = store;
	job->attempt.conf = conf;
	rc = runner_claim(&job->attempt, &job->stored);
	if (rc == RC_OK)
		*item = job;
	else
		runner_job_free(job);
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
	struct job *job = item;
	struct attempt *at = &job->attempt;
	const struct store_identity identity = { job->stored.scope,
		job->stored.path, job->stored.key };
	struct attempt_request kept;
	enum rc rc;

	(void)self;
	(void)conf;
	FAULT(JOB_CLAIMED);
	rc = attempt_request_load(at->store, &identity, job->stored.id, &kept);
	at->rq = &kept.rq;
	if (rc == RC_OK)
		attempt_run(at);
	else {
		log_event(LOG_ERROR, "handler-not-started", &kept.log,
		    LOG_S("why", rc_text(rc)));
		at->facts.run.end = RUN_NOT_STARTED;
	}
	attempt_judge(at);
	if (was_cut_off(at))
		at->record->requeue =
		    decide_requeue(at->lease.attempt, uuid_bits());
	attempt_complete(at);
	at->rq = NULL; /* it was borrowed */
	attempt_request_free(&kept);
	runner_job_free(job);
}

const struct work_kind runner_kind = {
	.name = "pending",
	.terms = runner_terms,
	.next = runner_next,
	.run = runner_run,
};
