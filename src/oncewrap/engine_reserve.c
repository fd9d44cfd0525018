/*
 * The reservation: reads the record, decides, and takes the lease or a place in
 * the queue.  The transaction that takes either reads the record again; if
 * another request was faster, so does the job.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "decide.h"
#include "fault.h"
#include "fingerprint.h"
#include "limit.h"
#include "maintenance.h"
#include "metrics.h"
#include "recent.h"
#include "respond.h"
#include "status.h"
#include "uuid.h"

#include "engine_impl.h"

/* A record that changes at every try would be a bug. */
#define RESERVE_TRIES 8

/* Pause (ms) between two tries to recover a key with a dead owner. */
#define RECOVER_PAUSE 250

/* By the record that was read. */
static void
note_acted(struct job *job)
{
	job->acted_before = outcome_may_have_acted(&job->record);
	job->may_have_acted = job->acted_before || job->record.queued;
}

void
engine_note_unused(struct job *job)
{
	const struct store_identity identity = {
		.scope = job->scope.data, .path = job->rq->path, .key = job->key
	};
	struct record record;
	enum rc rc;

	if (!job->may_have_acted || job->scope_rc != RC_OK ||
	    engine_find_key(job) != RC_OK || job->verdict != KEY_OK)
		return;
	memset(&record, 0, sizeof(record));
	rc = store_find(job->engine->store, &identity, &record);
	job->may_have_acted = rc != RC_NOTFOUND;
	record_free(&record);
}

/* There is no record, as far as this process has read. */
static void
reserve_note_absent(struct job *job)
{
	job->again = job->acted_before = job->may_have_acted = false;
	job->attempts = 0;
}

/* Whether the key belongs to the browser that sends it: decide_is_mine(). */
static bool
is_of_browser(const struct job *job)
{
	return job->scope_empty && engine_key_is_of_page(job);
}

/* The method as it is stored: a token of RFC 9110, section 5.6.2. */
static const char *
method_word(const char *method)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz";
	const size_t n = strlen(method);

	return n > 0 && n <= LIMIT_METHOD && strspn(method, token) == n ? method
									: "?";
}

/* Fills in what the reservation says of its caller. */
static void
note_caller(struct job *job)
{
	const unsigned char *secret = store_secret(job->engine->store);
	const char *cookie = request_param(job->rq, "HTTP_COOKIE");
	struct store_reservation *rv = &job->reservation;
	unsigned char bytes[CALLER_COOKIE_LEN];

	if (rv->caller != 0)
		return;
	rv->peer = request_param(job->rq, "REMOTE_ADDR");
	rv->method = method_word(job->rq->method);
	rv->instance = job->rq->instance + strlen("urn:uuid:");
	rv->caller = scope_caller_number(
	    secret, job->scope.data, rv->peer, job->rule->path);
	if (is_of_browser(job)) {
		/* Without cookies it is like no other. */
		uuid_random(job->cookie);
		if (cookie != NULL && *cookie != '\0') {
			scope_caller_cookie(secret, cookie, bytes);
			uuid_text(bytes, job->cookie);
		}
		rv->cookie = job->cookie;
	}
	if (rv->peer != NULL &&
	    (*rv->peer == '\0' || strlen(rv->peer) > LIMIT_PEER))
		rv->peer = NULL;
}

/* --- what is stored under the key ----------------------------------------- */

static enum place
refuse_store(struct job *job, enum rc rc)
{
	(void)engine_refuse_store(job, rc);
	return PLACE_ANSWER;
}

enum place
engine_look(struct job *job)
{
	struct store *store = job->engine->store;

	if (job->engine->draining) {
		(void)engine_refuse_stop(job);
		return PLACE_ANSWER;
	}
	if (job->looks++ == RESERVE_TRIES)
		return refuse_store(job, RC_BUSY);
	record_free(&job->record);
	store_inline_answer_free(&job->inline_answer);
	job->may_have_acted = true;
	return engine_called(job,
	    store_call_lookup(store, &job->call, &job->reservation.identity,
		&job->record, &job->inline_answer),
	    PLACE_LOOKED);
}

/*
 * The record has another spec than the route's.  So the fingerprint is made
 * again by that spec, which the reservation then keeps: this request is
 * compared, and reserved, in the way of the first request.
 */
static enum place
place_of_compare(struct job *job)
{
	const struct request *rq = job->rq;
	enum place next;

	if (rq->body_len <= LIMIT_SPOOL_MEMORY)
		return PLACE_COMPARE;
	return !fingerprint_needs_json(rq, job->record.fingerprint_spec) ||
		engine_take_memory(job, PLACE_COMPARE_LARGE, &next)
	    ? PLACE_COMPARE_LARGE
	    : next;
}

/* The decision by the record. */
static enum place
judge_record(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	const struct record *record = &job->record;
	enum decide_match match;

	if (record->cookie[0] != '\0' || is_of_browser(job))
		note_caller(job);
	match = decide_match(record, rv->fingerprint_spec, rv->fingerprint);
	job->decision =
	    decide(record, decide_is_mine(record, rv->peer, rv->cookie),
		match == DECIDE_SAME, store_now(job->engine->store));
	job->again = job->decision == DECIDE_RUN;
	note_acted(job);
	job->attempts = record->attempt;
	return PLACE_DECIDE;
}

enum place
engine_looked(struct job *job)
{
	const enum rc rc = job->call.rc;
	const int64_t now = store_now(job->engine->store);
	struct record *record = &job->record;

	if (rc == RC_NOTFOUND || (rc == RC_OK && decide_is_past(record, now))) {
		reserve_note_absent(job);
		job->decision = DECIDE_RUN;
		return PLACE_DECIDE;
	}
	if (rc != RC_OK)
		return refuse_store(job, rc);
	record_check(record);
	return decide_match(record, job->reservation.fingerprint_spec,
		   job->reservation.fingerprint) == DECIDE_OTHER_SPEC
	    ? place_of_compare(job)
	    : judge_record(job);
}

enum place
engine_compare(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	enum rc rc;

	buf_clear(&job->fingerprint_spec);
	rc = buf_adds(&job->fingerprint_spec, job->record.fingerprint_spec);
	rv->fingerprint_spec = job->fingerprint_spec.data;
	if (rc == RC_OK)
		rc = engine_fingerprint(job, rv->fingerprint_spec);
	return rc == RC_OK ? judge_record(job) : refuse_store(job, rc);
}

/* --- the decision --------------------------------------------------------- */

/* Whether the process that has the lease may be dead, and it is time for a try
 * to recover the key.  Each key is tried only now and then, because a try reads
 * the list of all processes. */
static bool
may_recover(struct job *job)
{
	struct engine *engine = job->engine;
	const struct record *record = &job->record;
	struct engine_recovery *last =
	    &engine->recovery[record->id % ENGINE_RECOVERIES];
	const int64_t now = loop_now(engine->loop);

	if (!store_owner_may_be_gone(engine->store, record->owner) ||
	    (last->id == record->id && now < last->again_mono))
		return false;
	*last = (struct engine_recovery){ record->id, now + RECOVER_PAUSE };
	return true;
}

enum place
engine_recover(struct job *job)
{
	int n;

	(void)maintenance_recover_key(job->engine->store, &job->record, &n);
	return PLACE_LOOK;
}

/* Whether the caller exceeds the rate of new keys.  A request is counted once,
 * even if it reads the record several times. */
static bool
is_too_fast(struct job *job)
{
	const unsigned limit = job->rule->key_rate;

	if (limit == 0 || job->again || job->counted)
		return false;
	job->counted = true;
	job->too_fast = rate_take(job->engine->rate, job->reservation.caller,
			    limit, loop_now(job->engine->loop)) > 0;
	return job->too_fast;
}

/* A client may fetch its answer however late; only a run can be a second
 * one. */
static enum place
decide_run(struct job *job)
{
	if (job->untaken != RC_OK)
		return refuse_store(job, job->untaken);
	job->age = route_age(job->rule, job->rq, clock_wall());
	if (job->age != AGE_GOOD) {
		job->decision = DECIDE_OLD;
		return PLACE_RESPOND;
	}
	note_caller(job);
	if (is_too_fast(job)) {
		job->decision = DECIDE_CROWDED;
		return PLACE_RESPOND;
	}
	return PLACE_SLOT;
}

enum place
engine_decide(struct job *job)
{
	struct store *store = job->engine->store;
	const enum decision decision = job->decision;

	engine_give_memory(job);
	if (decision == DECIDE_RUN)
		return decide_run(job);
	if (decision == DECIDE_BUSY && may_recover(job))
		return PLACE_RECOVER;
	if (decision != DECIDE_BUSY && decision != DECIDE_REPLAY &&
	    decision != DECIDE_NOT_KEPT)
		return PLACE_RESPOND;
	return store_is_durable(store, &job->record) &&
		(decision != DECIDE_REPLAY || job->inline_answer.is)
	    ? PLACE_FETCH
	    : PLACE_FETCH_STORE;
}

/* Gets the stored response; for what a client is told otherwise, it is enough
 * that it is durable. */
enum place
engine_fetch(struct job *job)
{
	struct store *store = job->engine->store;
	enum rc rc = RC_OK;

	if (job->decision == DECIDE_REPLAY)
		rc = respond_fetch(store, &job->reservation.identity,
		    &job->record, &job->inline_answer, &job->answer);
	else
		rc = store_make_durable(store, &job->record);
	if (rc == RC_NOTFOUND)
		return PLACE_LOOK;
	if (rc != RC_OK)
		return refuse_store(job, rc);
	return job->decision == DECIDE_BUSY ? PLACE_FIRST : PLACE_RESPOND;
}

/* --- a request that waits for the first one of its key ------------------- */

/*
 * When that ends in this process, those that wait look again at once.  It may
 * end elsewhere: so many of them look in each interval (ms), in turn.
 */
#define LOOK_EACH  200
#define LOOK_PAUSE 100

static void
look_at_some(struct loop_timer *t)
{
	struct engine *engine = OWNER(t, struct engine, look);
	struct job *job;

	for (int i = 0;
	     i < LOOK_EACH && (job = TAILQ_FIRST(&engine->first)) != NULL; i++)
		engine_wake(job);
	/* Perhaps none of those comes back. */
	if (!TAILQ_EMPTY(&engine->first))
		loop_set(engine->loop, t, loop_now(engine->loop) + LOOK_PAUSE);
}

enum place
engine_first(struct job *job)
{
	struct engine *engine = job->engine;
	const int64_t now = loop_now(engine->loop);

	if (job->wait_until == 0)
		job->wait_until = now + job->rule->wait_time;
	if (job->rule->concurrent != CONF_CONCURRENT_WAIT ||
	    job->record.accepted || engine->draining || now >= job->wait_until)
		return PLACE_RESPOND;
	engine_free_slot(job);
	job->timer.due = engine_timer_due;
	loop_set(engine->loop, &job->timer, job->wait_until);
	engine->look.due = look_at_some;
	if (!engine->look.is_set)
		loop_set(engine->loop, &engine->look, now + LOOK_PAUSE);
	return engine_wait_in(job, &engine->first, PLACE_WAITED);
}

enum place
engine_waited(struct job *job)
{
	if (job->engine->draining)
		return PLACE_RESPOND;
	FAULT(WAIT_OVER);
	job->looks = 0;
	job->untaken = RC_OK;
	return PLACE_LOOK;
}

/* --- a slot, and the lease ------------------------------------------------ */

enum place
engine_slot(struct job *job)
{
	const struct conf_route *rule = job->rule;
	enum place next = PLACE_PREPARE;

	if (job->engine->draining) {
		(void)engine_refuse_stop(job);
		return PLACE_ANSWER;
	}
	if (!job->guarded)
		return engine_take_slot(
		    job, engine_place_of_start(job), PLACE_SLOT);
	if (rule->on_crash == CONF_CRASH_RESUME || rule->reconcile.argv.n > 0)
		next = PLACE_PREPARE_FILES;
	next = engine_take_slot(job, next, PLACE_LOOK);
	if (next == PLACE_WAIT) {
		/* Meanwhile another request may run the key. */
		job->may_have_acted = true;
		job->looks = 0;
	}
	return next;
}

enum place
engine_prepare(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	enum rc rc = RC_OK;

	rv->max_kept = job->conf->max_kept;
	rv->max_store = job->conf->max_store;
	if (job->later || rv->reconcile_delay != 0)
		rc = attempt_keep_request(&job->attempt, rv);
	if (rc == RC_OK && !job->later)
		rc = attempt_prepare(&job->attempt, rv);
	return rc == RC_OK ? PLACE_TAKE : refuse_store(job, rc);
}

enum place
engine_take(struct job *job)
{
	record_free(&job->record);
	job->asked = (struct store_asked){ .what = &job->reservation,
		.lease = job->later ? NULL : &job->attempt.lease,
		.ticket = job->later ? &job->ticket : NULL,
		.max_queue = job->conf->async_queue,
		.decision = &job->decision,
		.found = &job->record };
	return engine_called(job,
	    store_call_admit(job->engine->store, &job->call, &job->asked),
	    PLACE_TAKEN);
}

/* Gets the lease or a place in the queue, or the record in the way. */
enum place
engine_taken(struct job *job)
{
	const enum rc rc = job->call.rc;

	/* An attempt that was not seen may have acted. */
	job->attempt.facts.acted_before = job->acted_before ||
	    job->attempt.lease.attempt != job->attempts + 1;
	/* Whether another request has run the key is still to be told. */
	if (rc != RC_OK && job->may_have_acted) {
		job->untaken = rc;
		return PLACE_LOOK;
	}
	if (rc != RC_OK)
		return refuse_store(job, rc);
	if (job->decision == DECIDE_RUN) {
		/* Its outcome waits for no request that comes later. */
		job->call.first = true;
		return PLACE_RESPOND;
	}
	if (job->record.id != 0)
		note_acted(job);
	else
		reserve_note_absent(job);
	/* The store is asked who has filled it: is_kept_full(). */
	if (job->decision == DECIDE_NO_ROOM)
		return PLACE_RESPOND_STORE;
	return decide_is_limit(job->decision) ? PLACE_RESPOND : PLACE_LOOK;
}
