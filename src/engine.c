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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "attempt.h"
#include "clock.h"
#include "crew.h"
#include "decide.h"
#include "fault.h"
#include "fingerprint.h"
#include "handler.h"
#include "key.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "problem.h"
#include "replay.h"
#include "route.h"
#include "scope.h"
#include "engine.h"

/* A record that keeps changing under us would be a bug. */
#define RESERVE_TRIES 8

struct engine {
	struct store *store;
	struct crew *crew;
	atomic_uint waiting; /* requests that hold a worker for another one */
	unsigned max_waiting;
	atomic_bool hurry; /* nobody waits any more */
};

struct job {
	struct engine *engine;
	const struct conf *conf;
	const struct request *rq;
	const struct conf_route *rule;
	struct answer *answer;
	/* from identify() and take_fingerprint() */
	struct key key;
	struct buf scope, recipe;
	struct store_reservation reservation;
	/* from reserve(): what stands in the way, or the attempt's lease */
	struct record record;
	struct store_small small;
	struct attempt attempt;
};

/* --- refusing ----------------------------------------------------------- */

/* For use as `return refuse(...)`: a stage that refuses returns false. */
static bool
refuse(struct job *job, enum problem_code code, const char *detail)
{
	answer_refuse(job->answer, code, detail, job->conf, job->rq);
	return false;
}

static bool
refuse_store(struct job *job, enum rc rc)
{
	log_event(LOG_ERROR, "store-unavailable", job->rq->instance,
	    LOG_S("why", rc_text(rc)));
	return refuse(job, PROBLEM_STORE_UNAVAILABLE,
	    "The key store is not usable now; this request ran nothing.");
}

/* --- what was asked ----------------------------------------------------- */

static bool
receive(struct job *job)
{
	switch (job->rq->body_state) {
	case BODY_WHOLE:
		return true;
	case BODY_TOO_LARGE:
		return refuse(job, PROBLEM_BODY_TOO_LARGE,
		    "The request body is longer than this resource allows.");
	case BODY_MISMATCH:
		return refuse(job, PROBLEM_BODY_INCOMPLETE,
		    "The request body is not as long as CONTENT_LENGTH says.");
	case BODY_BAD_LENGTH:
		return refuse(job, PROBLEM_BODY_INCOMPLETE,
		    "CONTENT_LENGTH is not a number.");
	case BODY_ABORTED:
		return refuse(
		    job, PROBLEM_BODY_INCOMPLETE, "The request was cut off.");
	case BODY_UNSTORABLE:
		return refuse(job, PROBLEM_STORE_UNAVAILABLE,
		    "There is no room for the request body; nothing ran.");
	}
	assert(!"body_state out of range");
	return false;
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
		return refuse(job, PROBLEM_KEY_MISSING,
		    "This resource needs an idempotency key.");
	case 1:
		break;
	default:
		return refuse(job, PROBLEM_KEY_INVALID,
		    "The request has more than one idempotency key.");
	}
	verdict = key_parse(request_param(job->rq, name), job->rule, &job->key);
	if (verdict != KEY_OK)
		return refuse(
		    job, PROBLEM_KEY_INVALID, key_verdict_text(verdict));

	rc = scope_make(job->rq, &job->rule->scope,
	    store_secret(job->engine->store), &job->scope, &empty);
	if (rc == RC_NOMEM)
		return refuse_store(job, rc);
	if (rc != RC_OK)
		return refuse(job, PROBLEM_KEY_INVALID,
		    "The values that name the caller are too long.");
	if (empty && job->rule->scope_required)
		return refuse(job, PROBLEM_SCOPE_REQUIRED,
		    "This resource needs an authenticated caller.");
	job->reservation.identity.scope = job->scope.data;
	job->reservation.identity.path = job->rq->path;
	job->reservation.identity.key = job->key.text;
	job->attempt.key = job->key.text;
	job->attempt.scope = job->scope.data;
	return true;
}

static bool
take_fingerprint(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	enum rc rc;

	if ((rc = fingerprint_recipe(job->rule, &job->recipe)) != RC_OK ||
	    (rc = fingerprint_make(
		 job->rq, job->recipe.data, rv->fingerprint)) != RC_OK)
		return refuse_store(job, rc);
	rv->recipe = job->recipe.data;
	attempt_terms(job->rule, rv);
	FAULT(FINGERPRINTED);
	return true;
}

/* --- the record --------------------------------------------------------- */

/*
 * Reads the record.  If it was made by another recipe than the route's, the
 * fingerprint is taken again by that one, and stays so: this request is now
 * compared, and reserved if it may, in the way of the first.
 */
static enum rc
look(struct job *job, enum decision *decision)
{
	struct store_reservation *rv = &job->reservation;
	const int64_t now = store_now(job->engine->store);
	struct record *record = &job->record;
	enum rc rc;
	bool same;

	record_free(record);
	store_small_free(&job->small);
	rc = store_look(job->engine->store, &rv->identity, record, &job->small);
	if (rc == RC_NOTFOUND || (rc == RC_OK && decide_is_past(record, now))) {
		*decision = DECIDE_RUN;
		return RC_OK;
	}
	if (rc != RC_OK)
		return rc;
	record_check(record);
	if (strcmp(record->recipe, rv->recipe) != 0) {
		buf_clear(&job->recipe);
		if ((rc = buf_adds(&job->recipe, record->recipe)) != RC_OK)
			return rc;
		rv->recipe = job->recipe.data;
		rc = fingerprint_make(job->rq, rv->recipe, rv->fingerprint);
		if (rc != RC_OK)
			return rc;
	}
	same = memcmp(rv->fingerprint, record->fingerprint,
		   sizeof(rv->fingerprint)) == 0;
	*decision = decide(record, same, now);
	return RC_OK;
}

/*
 * Looks, and gets what there is to be had: the stored answer, or the lease.
 * Where somebody was faster, what they left is looked at again.
 */
static enum rc
look_and_take(struct job *job, enum decision *decision)
{
	enum rc rc;
	int tries;

	for (tries = 0; tries < RESERVE_TRIES; tries++) {
		if ((rc = look(job, decision)) != RC_OK)
			return rc;
		if (*decision == DECIDE_REPLAY) {
			if (!job->small.is)
				crew_pass(job->engine->crew);
			rc = replay_fetch(job->engine->store, job->record.id,
			    &job->small, job->answer);
			if (rc != RC_NOTFOUND)
				return rc;
			continue;
		}
		if (*decision != DECIDE_RUN)
			return RC_OK;
		crew_pass(job->engine->crew);
		rc = attempt_prepare(&job->attempt, &job->reservation);
		if (rc != RC_OK)
			return rc;
		record_free(&job->record);
		rc = store_reserve(job->engine->store, &job->reservation,
		    &job->attempt.lease, decision, &job->record);
		if (rc != RC_OK || *decision == DECIDE_RUN)
			return rc;
	}
	return RC_BUSY;
}

static bool
may_wait(struct job *job)
{
	struct engine *engine = job->engine;

	if (job->rule->concurrent != CONF_CONCURRENT_WAIT)
		return false;
	if (atomic_fetch_add(&engine->waiting, 1) < engine->max_waiting)
		return true;
	atomic_fetch_sub(&engine->waiting, 1);
	return false;
}

static enum metrics_id
counted_as(const struct job *job, enum decision decision)
{
	switch (decision) {
	case DECIDE_RUN:
		return job->attempt.lease.attempt > 1
		    ? METRICS_RESERVE_FAILED_RETRY
		    : METRICS_RESERVE_CREATED;
	case DECIDE_REPLAY:
	case DECIDE_NOT_KEPT:
	case DECIDE_GONE:
		return METRICS_RESERVE_REPLAY;
	case DECIDE_BUSY:
		return METRICS_RESERVE_IN_PROGRESS;
	case DECIDE_MISMATCH:
		return METRICS_RESERVE_KEY_MISUSE;
	case DECIDE_UNKNOWN:
		return METRICS_RESERVE_UNKNOWN;
	}
	assert(!"decision out of range");
	return METRICS_RESERVE_UNKNOWN;
}

/*
 * Wins the reservation, or finds what stands in its way; waits for a run under
 * way if the route says so.  False: the store failed, and that is answered.
 */
static bool
reserve(struct job *job, enum decision *decision)
{
	uint64_t generation = 0;
	int64_t until;
	enum rc rc;

	rc = look_and_take(job, decision);
	if (rc == RC_OK && *decision == DECIDE_BUSY && may_wait(job)) {
		crew_pass(job->engine->crew);
		until = clock_mono() + job->rule->wait_time;
		while (rc == RC_OK && *decision == DECIDE_BUSY &&
		    !atomic_load(&job->engine->hurry) &&
		    store_wait(job->engine->store, &generation, until)) {
			FAULT(WAIT_OVER);
			rc = look_and_take(job, decision);
		}
		atomic_fetch_sub(&job->engine->waiting, 1);
	}
	if (rc != RC_OK)
		return refuse_store(job, rc);
	metrics_count(counted_as(job, *decision));
	return true;
}

/* --- requests that are not guarded -------------------------------------- */

static void
pass_through(struct job *job)
{
	struct run_facts facts;

	if (!receive(job))
		return;
	crew_pass(job->engine->crew);
	job->answer->stream = handler_start(
	    job->rule, &job->rule->handler, job->rq, NULL, -1, &facts);
	if (job->answer->stream == NULL)
		(void)refuse(job, PROBLEM_HANDLER_NOT_STARTED,
		    "The program could not be started.");
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

void
engine_handle(struct engine *engine, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	enum decision decision;
	struct job job;

	job_init(&job, engine, conf, rq, answer);
	if (rq->method[0] == '\0') {
		(void)refuse(&job, PROBLEM_REQUEST_INVALID,
		    "The web server sent no valid CGI request.");
		goto out;
	}
	if (route_is_admin(conf, rq->path)) {
		crew_pass(engine->crew);
		admin_handle(engine->store, conf, rq, answer);
		goto out;
	}
	if (!route_guards(conf, job.rule, rq)) {
		pass_through(&job);
		goto out;
	}
	if (!receive(&job) || !identify(&job) || !take_fingerprint(&job) ||
	    !reserve(&job, &decision))
		goto out;

	switch (decision) {
	case DECIDE_RUN:
		FAULT(RESERVED);
		attempt_run(&job.attempt);
		attempt_judge(&job.attempt);
		attempt_complete(&job.attempt);
		attempt_answer(&job.attempt, answer);
		break;
	case DECIDE_REPLAY:
		replay_mark(engine->store, &job.record, answer);
		break;
	case DECIDE_NOT_KEPT:
		replay_not_kept(&job.record, conf, rq, answer);
		break;
	case DECIDE_BUSY:
		(void)refuse(&job, PROBLEM_KEY_IN_PROGRESS,
		    "A request with this key is being handled.");
		break;
	case DECIDE_MISMATCH:
		(void)refuse(&job, PROBLEM_KEY_REUSED,
		    "This key was used for a different request.");
		break;
	case DECIDE_UNKNOWN:
		(void)refuse(&job, PROBLEM_OUTCOME_UNKNOWN,
		    "It is not known whether this request took effect.");
		break;
	case DECIDE_GONE:
		(void)refuse(&job, PROBLEM_KEY_EXPIRED,
		    "This key was used, and its answer has expired.");
		break;
	}
out:
	job_free(&job);
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
	free(engine);
}
