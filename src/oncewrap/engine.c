/*
 * The request path, from top to bottom.  engine_handle() is the product.  It
 * finds the kind of the request.  A guarded request passes the checks
 * (engine_check.c) and the reservation (engine_reserve.c); each of them adds
 * one thing to struct job, or refuses the request.  respond() has one response
 * for each decision.
 *
 *  1. Nothing runs before its reservation is durable.
 *  2. No byte of an answer leaves before its outcome is durable.
 *  3. A failure between the two leaves the key taken, never free.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "handler.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "page.h"
#include "prefer.h"
#include "respond.h"
#include "route.h"
#include "status.h"
#include "engine_impl.h"

#include "engine.h"

static struct run *
pass_through(struct job *job)
{
	const struct handler_call call = { NULL, -1,
		store_secret(job->engine->store), NULL };
	struct run_facts facts;
	struct run *run;

	engine_drop_json(job);
	if (!engine_check_body(job))
		return NULL;
	run = handler_start(&job->rule->handler, job->rq, &call, &facts);
	if (run == NULL)
		respond_not_started(job->answer, &facts, job->rq);
	return run;
}

static void
accepted(struct job *job)
{
	FAULT(ACCEPTED);
	respond_log(job->rq, "accepted", 202);
	status_accepted(job->engine->store, job->conf, job->rq,
	    job->ticket.resource, job->answer);
}

static void
engine_run(struct job *job)
{
	FAULT(RESERVED);
	attempt_run(&job->attempt);
	attempt_judge(&job->attempt);
	attempt_complete(&job->attempt);
	respond_attempt(&job->attempt, job->answer);
}

static void
busy(struct job *job)
{
	const struct record *record = &job->record;

	if (!record->accepted &&
	    (job->rule->concurrent != CONF_CONCURRENT_ACCEPT ||
		record->resource[0] == '\0')) {
		(void)engine_refuse(job, PROBLEM_KEY_IN_PROGRESS, NULL);
		return;
	}
	respond_log(job->rq, "in-progress", 202);
	status_accepted(job->engine->store, job->conf, job->rq,
	    record->resource, job->answer);
}

static void
job_init(struct job *job, struct engine *engine, const struct conf *conf,
    struct request *rq, struct answer *answer)
{
	memset(job, 0, sizeof(*job));
	job->engine = engine;
	job->conf = conf;
	job->rq = rq;
	job->rule = route_find(conf, rq->path);
	job->may_have_acted = true;
	job->later = job->rule->async == CONF_ASYNC_ALWAYS ||
	    (job->rule->async == CONF_ASYNC_PREFER && prefer_respond_async(rq));
	job->answer = answer;
	buf_init(&job->scope, LIMIT_SCOPE);
	buf_init(&job->fingerprint_spec, LIMIT_FINGERPRINT_SPEC);
	store_inline_answer_init(&job->inline_answer);
	attempt_init(&job->attempt);
	job->attempt.store = engine->store;
	job->attempt.conf = conf;
	job->attempt.rule = job->rule;
	job->attempt.rq = rq;
}

static void
engine_job_free(struct job *job)
{
	engine_drop_json(job);
	buf_free(&job->scope);
	buf_free(&job->fingerprint_spec);
	record_free(&job->record);
	store_inline_answer_free(&job->inline_answer);
	attempt_free(&job->attempt);
}

/* --- the path ----------------------------------------------------------- */

enum kind {
	KIND_INVALID,
	KIND_ADMIN,
	KIND_STATUS,
	KIND_UNGUARDED,
	KIND_GUARDED
};

static enum kind
kind_of(struct job *job)
{
	if (job->rq->invalid != NULL)
		return KIND_INVALID;
	if (route_is_admin(job->conf, job->rq->path))
		return KIND_ADMIN;
	if (route_is_status(job->conf, job->rq->path))
		return KIND_STATUS;
	switch (route_guards(job->rule, job->rq)) {
	case ROUTE_UNGUARDED:
		job->may_have_acted = false;
		return KIND_UNGUARDED;
	case ROUTE_GUARDED:
		return KIND_GUARDED;
	case ROUTE_BY_KEY:
		break;
	}
	/* A body that is not whole is refused as well without a guard.  If the
	 * search fails, the checks fail: never unguarded. */
	if (job->rq->body_state != BODY_WHOLE)
		return KIND_UNGUARDED;
	if (engine_find_key(job) != RC_OK || job->verdict != KEY_ABSENT)
		return KIND_GUARDED;
	job->may_have_acted = false;
	return KIND_UNGUARDED;
}

/* The response to a guarded request, by the decision of its reservation. */
static void
respond(struct job *job, enum decision decision)
{
	switch (decision) {
	case DECIDE_RUN:
		if (job->later)
			accepted(job);
		else
			engine_run(job);
		break;
	case DECIDE_REPLAY:
		respond_mark_replay(
		    job->engine->store, job->rule, &job->record, job->answer);
		respond_log(job->rq, "replay", job->answer->response.status);
		break;
	case DECIDE_NOT_KEPT:
		respond_not_kept(job->answer, &job->record, job->conf, job->rq);
		break;
	case DECIDE_BUSY:
		busy(job);
		break;
	case DECIDE_OF_ANOTHER:
		(void)engine_refuse(job, PROBLEM_KEY_OF_ANOTHER, NULL);
		break;
	case DECIDE_MISMATCH:
		(void)engine_refuse_reused(job);
		break;
	case DECIDE_UNKNOWN:
		(void)engine_refuse(job, PROBLEM_OUTCOME_UNKNOWN, NULL);
		break;
	case DECIDE_GONE:
		(void)engine_refuse(job, PROBLEM_KEY_EXPIRED, NULL);
		break;
	case DECIDE_OLD:
	case DECIDE_CROWDED:
	case DECIDE_OPEN:
	case DECIDE_NO_ROOM:
	case DECIDE_FULL:
		assert(!"engine_reserve() has refused it");
		break;
	}
}

struct run *
engine_handle(struct engine *engine, const struct conf *conf,
    struct request *rq, struct answer *answer)
{
	struct run *stream = NULL;
	enum decision decision;
	struct job job;

	job_init(&job, engine, conf, rq, answer);
	switch (kind_of(&job)) {
	case KIND_INVALID:
		(void)engine_refuse(&job, PROBLEM_REQUEST_INVALID, rq->invalid);
		break;
	case KIND_ADMIN:
		page_handle(engine->store, conf, rq, answer);
		break;
	case KIND_STATUS:
		status_handle(engine->store, conf, rq, answer);
		break;
	case KIND_UNGUARDED:
		engine_make_scope(&job);
		stream = pass_through(&job);
		break;
	case KIND_GUARDED:
		engine_make_scope(&job);
		engine_note_key(&job);
		engine_make_reference(&job);
		if (engine_check_body(&job) && engine_check_size(&job) &&
		    engine_check_key(&job) && engine_check_scope(&job) &&
		    engine_take_fingerprint(&job) &&
		    engine_reserve(&job, &decision))
			respond(&job, decision);
		break;
	}
	engine_job_free(&job);
	return stream;
}

/* --- beginning and end -------------------------------------------------- */

struct engine *
engine_new(struct store *store, unsigned workers)
{
	struct engine *engine;
	unsigned waits;

	if ((engine = calloc(1, sizeof(*engine))) == NULL)
		return NULL;
	engine->store = store;
	engine->max_waiting = workers / 2;
	engine->rate = rate_new();
	waits = engine->max_waiting > 1 ? engine->max_waiting / 2 : 1;
	engine->large_json =
	    budget_new(LIMIT_JSON_MEMORY - LIMIT_JSON_SMALL, waits);
	engine->small_json = budget_new(LIMIT_JSON_SMALL, waits);
	if (engine->rate == NULL || engine->large_json == NULL ||
	    engine->small_json == NULL) {
		engine_free(engine);
		return NULL;
	}
	return engine;
}

bool
engine_begin_waiting(struct engine *engine)
{
	if (atomic_fetch_add(&engine->waiting, 1) >= engine->max_waiting) {
		atomic_fetch_sub(&engine->waiting, 1);
		return false;
	}
	metrics_add(METRICS_REQUESTS_WAITING, 1);
	return true;
}

void
engine_end_waiting(struct engine *engine)
{
	metrics_add(METRICS_REQUESTS_WAITING, -1);
	atomic_fetch_sub(&engine->waiting, 1);
}

void
engine_drain(struct engine *engine)
{
	/* Requests that wait for another one of their key poll this flag at
	 * least as often as the store. */
	atomic_store(&engine->draining, true);
	budget_stop_waiting(engine->large_json);
	budget_stop_waiting(engine->small_json);
}

void
engine_free(struct engine *engine)
{
	if (engine == NULL)
		return;
	rate_free(engine->rate);
	budget_free(engine->large_json);
	budget_free(engine->small_json);
	free(engine);
}
