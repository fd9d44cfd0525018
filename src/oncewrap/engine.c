/*
 * The request path.  engine_handle() is the product; every stage below it
 * takes what the stages before have found out, in struct job, and adds one
 * thing, or refuses the request and with that ends it.
 *
 *  1. Nothing runs before its reservation is durable.
 *  2. No byte of an answer leaves before its outcome is durable.
 *  3. Whatever goes wrong between the two leaves the key taken, never free.
 *  4. Whatever may wait - for a commit, a program, another request - or take
 *     long, passes the turn first: see crew.h.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "age.h"
#include "clock.h"
#include "crew.h"
#include "fault.h"
#include "fingerprint.h"
#include "handler.h"
#include "limit.h"
#include "log.h"
#include "prefer.h"
#include "problem.h"
#include "replay.h"
#include "respond.h"
#include "route.h"
#include "scope.h"
#include "spool.h"
#include "status.h"
#include "engine_impl.h"

#include "engine.h"

/* A comparison that needs so much memory (bytes) takes some milliseconds. */
#define LONG_COMPARISON (1024 * 1024)

/* --- refusing ----------------------------------------------------------- */

bool
engine_refuse(struct job *job, enum problem_code code, const char *detail)
{
	respond_refuse(job->answer, code, detail, job->conf, job->rq);
	return false;
}

bool
engine_refuse_store(struct job *job, enum rc rc)
{
	log_event(LOG_ERROR, "store-unavailable", job->rq->instance,
	    LOG_S("why", rc_text(rc)));
	return engine_refuse(job, PROBLEM_STORE_UNAVAILABLE,
	    rc == RC_WENT_BACK
		? "The key store has gone back in time (store-went-back), and "
		  "must be looked at; this request ran nothing."
		: "The key store is not usable now; this request ran nothing.");
}

/* --- what was asked ----------------------------------------------------- */

static const char no_room[] =
    "The bodies of the requests under way take all of spool_total; "
    "nothing ran.";

static const struct {
	enum problem_code code;
	const char *detail;
} bodies[] = {
	[BODY_WHOLE] = { PROBLEM_NONE, NULL },
	[BODY_TOO_LARGE] = { PROBLEM_BODY_TOO_LARGE,
	    "The request body is longer than this resource allows." },
	[BODY_MISMATCH] = { PROBLEM_BODY_INCOMPLETE,
	    "The request body is not as long as CONTENT_LENGTH says." },
	[BODY_BAD_LENGTH] = { PROBLEM_BODY_INCOMPLETE,
	    "CONTENT_LENGTH is not a number, or came twice with two "
	    "values." },
	[BODY_ABORTED] = { PROBLEM_BODY_INCOMPLETE,
	    "The request was cut off." },
	[BODY_NO_ROOM] = { PROBLEM_OVERLOADED, no_room },
	[BODY_UNSTORABLE] = { PROBLEM_STORE_UNAVAILABLE,
	    "There is no room for the request body; nothing ran." },
};

static bool
receive(struct job *job)
{
	enum body_state state = job->rq->body_state;

	assert((size_t)state < sizeof(bodies) / sizeof(bodies[0]));
	if (state == BODY_WHOLE && !spool_has_room(0))
		state = BODY_NO_ROOM;
	return state == BODY_WHOLE ||
	    engine_refuse(job, bodies[state].code, bodies[state].detail);
}

static bool
refuse_twin(struct job *job)
{
	const char *name = scope_twin(job->rq, &job->rule->scope);
	char detail[320];

	snprintf(detail, sizeof(detail),
	    "The variable %.200s, which names the caller, came more than once.",
	    name);
	return engine_refuse(job, PROBLEM_REQUEST_INVALID, detail);
}

/* A body that is to be kept in the store is bounded by what that can hold. */
static bool
is_keepable(struct job *job)
{
	return (!job->later && job->rule->reconcile.n == 0) ||
	    job->rq->body_len <= LIMIT_KEPT_BODY ||
	    engine_refuse(job, PROBLEM_BODY_TOO_LARGE,
		"The request body is longer than one that has to be kept "
		"may be.");
}

/* Exactly one well-formed key, and a caller that it belongs to. */
static bool
identify(struct job *job)
{
	const char *name = job->conf->key_variable;
	enum key_verdict verdict;
	enum rc rc;
	bool empty;

	switch (request_count(job->rq, name)) {
	case 0:
		return engine_refuse(job, PROBLEM_KEY_MISSING,
		    "This resource needs an idempotency key.");
	case 1:
		break;
	default:
		return engine_refuse(job, PROBLEM_KEY_INVALID,
		    "The request has more than one idempotency key.");
	}
	verdict = key_parse(request_param(job->rq, name), job->rule, &job->key);
	if (verdict != KEY_OK)
		return engine_refuse(
		    job, PROBLEM_KEY_INVALID, key_verdict_text(verdict));

	rc = scope_make(job->rq, &job->rule->scope,
	    store_secret(job->engine->store), &job->scope, &empty);
	if (rc == RC_NOMEM)
		return engine_refuse_store(job, rc);
	if (rc == RC_INVALID)
		return refuse_twin(job);
	if (rc != RC_OK)
		return engine_refuse(job, PROBLEM_KEY_INVALID,
		    "The values that name the caller are too long.");
	if (empty && job->rule->scope_required)
		return engine_refuse(job, PROBLEM_SCOPE_REQUIRED,
		    "This resource needs an authenticated caller.");
	job->reservation.identity.scope = job->scope.data;
	job->reservation.identity.path = job->rq->path;
	job->reservation.identity.key = job->key.text;
	job->attempt.key = job->key.text;
	job->attempt.scope = job->scope.data;
	return true;
}

/* Not a retry of long ago, whose key may have been deleted since. */
static bool
is_recent(struct job *job)
{
	enum age age = age_judge(job->rule, job->rq, clock_wall());

	return age == AGE_GOOD ||
	    engine_refuse(job, PROBLEM_REQUEST_TOO_OLD, age_text(age));
}

enum rc
engine_fingerprint(struct job *job, const char *recipe)
{
	struct budget *budget = job->engine->comparisons;
	const size_t cost = fingerprint_cost(job->rq, recipe);
	enum rc rc;

	if (cost > LONG_COMPARISON || !budget_try(budget, cost)) {
		crew_pass(job->engine->crew);
		budget_take(budget, cost);
	}
	rc = fingerprint_make(job->rq, recipe, job->reservation.fingerprint);
	budget_give(budget, cost);
	return rc;
}

static bool
take_fingerprint(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	enum rc rc;

	if ((rc = fingerprint_recipe(job->rule, &job->recipe)) != RC_OK ||
	    (rc = engine_fingerprint(job, job->recipe.data)) != RC_OK)
		return engine_refuse_store(job, rc);
	rv->recipe = job->recipe.data;
	attempt_terms(job->rule, rv);
	FAULT(FINGERPRINTED);
	return true;
}

/* --- requests that are not guarded -------------------------------------- */

static struct run *
pass_through(struct job *job)
{
	struct run_facts facts;
	struct run *run;

	if (!receive(job))
		return NULL;
	crew_pass(job->engine->crew);
	run = handler_start(
	    job->rule, &job->rule->handler, job->rq, NULL, -1, &facts);
	if (run == NULL)
		(void)engine_refuse(job, PROBLEM_HANDLER_NOT_STARTED,
		    "The program could not be started.");
	return run;
}

/* --- requests that are accepted, and those under way -------------------- */

static void
accepted(struct job *job)
{
	FAULT(ACCEPTED);
	log_event(LOG_INFO, "accepted", job->rq->instance,
	    LOG_S("path", job->rq->path), LOG_S("key", job->key.text));
	status_accepted(job->engine->store, job->conf, job->rq,
	    job->ticket.resource, job->answer);
}

static void
run(struct job *job)
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
		(void)engine_refuse(job, PROBLEM_KEY_IN_PROGRESS,
		    "A request with this key is being handled.");
		return;
	}
	crew_pass(job->engine->crew);
	status_accepted(job->engine->store, job->conf, job->rq,
	    record->resource, job->answer);
}

/* --- the path ----------------------------------------------------------- */

static void
job_init(struct job *job, struct engine *engine, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	memset(job, 0, sizeof(*job));
	job->engine = engine;
	job->conf = conf;
	job->rq = rq;
	job->rule = route_find(conf, rq->path);
	job->later = job->rule->async == CONF_ASYNC_ALWAYS ||
	    (job->rule->async == CONF_ASYNC_PREFER && prefer_respond_async(rq));
	job->answer = answer;
	buf_init(&job->scope, LIMIT_SCOPE);
	buf_init(&job->recipe, LIMIT_RECIPE);
	store_small_init(&job->small);
	attempt_init(&job->attempt);
	job->attempt.store = engine->store;
	job->attempt.conf = conf;
	job->attempt.rule = job->rule;
	job->attempt.rq = rq;
}

static void
job_free(struct job *job)
{
	buf_free(&job->scope);
	buf_free(&job->recipe);
	record_free(&job->record);
	store_small_free(&job->small);
	attempt_free(&job->attempt);
}

struct run *
engine_handle(struct engine *engine, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	struct run *stream = NULL;
	enum decision decision;
	struct job job;

	job_init(&job, engine, conf, rq, answer);
	if (rq->invalid != NULL) {
		(void)engine_refuse(&job, PROBLEM_REQUEST_INVALID, rq->invalid);
		goto out;
	}
	if (route_is_admin(conf, rq->path)) {
		crew_pass(engine->crew);
		admin_handle(engine->store, conf, rq, answer);
		goto out;
	}
	if (route_is_status(conf, rq->path)) {
		crew_pass(engine->crew);
		status_handle(engine->store, conf, rq, answer);
		goto out;
	}
	if (!route_guards(conf, job.rule, rq)) {
		stream = pass_through(&job);
		goto out;
	}
	if (!receive(&job) || !is_keepable(&job) || !identify(&job) ||
	    !is_recent(&job) || !take_fingerprint(&job) ||
	    !engine_reserve(&job, &decision))
		goto out;

	switch (decision) {
	case DECIDE_RUN:
		if (job.later)
			accepted(&job);
		else
			run(&job);
		break;
	case DECIDE_REPLAY:
		replay_mark(engine->store, job.rule, &job.record, answer);
		break;
	case DECIDE_NOT_KEPT:
		replay_not_kept(&job.record, conf, rq, answer);
		break;
	case DECIDE_BUSY:
		busy(&job);
		break;
	case DECIDE_MISMATCH:
		(void)engine_refuse(&job, PROBLEM_KEY_REUSED,
		    "This key was used for a different request.");
		break;
	case DECIDE_UNKNOWN:
		(void)engine_refuse(&job, PROBLEM_OUTCOME_UNKNOWN,
		    "It is not known whether this request took effect.");
		break;
	case DECIDE_GONE:
		(void)engine_refuse(&job, PROBLEM_KEY_EXPIRED,
		    "This key was used, and its answer has expired.");
		break;
	case DECIDE_CROWDED:
	case DECIDE_OPEN:
	case DECIDE_NO_ROOM:
		assert(!"engine_reserve() has refused it");
		break;
	}
out:
	job_free(&job);
	return stream;
}

/* --- beginning and end -------------------------------------------------- */

struct engine *
engine_new(struct store *store, struct crew *crew, unsigned workers)
{
	struct engine *engine;

	if ((engine = calloc(1, sizeof(*engine))) == NULL)
		return NULL;
	engine->store = store;
	engine->crew = crew;
	engine->max_waiting = workers / 2;
	engine->rate = rate_new();
	engine->comparisons = budget_new(LIMIT_JSON_MEMORY);
	if (engine->rate == NULL || engine->comparisons == NULL) {
		engine_free(engine);
		return NULL;
	}
	return engine;
}

void
engine_hurry(struct engine *engine)
{
	/* They look at it at least as often as at the store. */
	atomic_store(&engine->hurry, true);
}

void
engine_free(struct engine *engine)
{
	if (engine == NULL)
		return;
	rate_free(engine->rate);
	budget_free(engine->comparisons);
	free(engine);
}
