/*
 * The reservation: reads the record, decides, and takes the lease or a place in
 * the queue.  The transaction that takes either reads the record again.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "decide.h"
#include "fault.h"
#include "maintenance.h"
#include "metrics.h"
#include "recent.h"
#include "respond.h"
#include "uuid.h"

#include "engine_impl.h"

/* A record that changes at every try would be a bug. */
#define RESERVE_TRIES 8

/* Pause (ms) between two tries to recover a key with a dead owner. */
#define RECOVER_PAUSE 250

/* Interval (ms) at which a waiting request checks whether the owner of its key
 * is dead. */
#define WAIT_LOOK 1000

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
	const struct store_identity identity = { .scope = job->scope.data,
		.path = job->rq->path,
		.key = job->key.text };
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
static enum rc
note_caller(struct job *job)
{
	const unsigned char *secret = store_secret(job->engine->store);
	const char *cookie = request_param(job->rq, "HTTP_COOKIE");
	struct store_reservation *rv = &job->reservation;
	unsigned char bytes[CALLER_COOKIE_LEN] = { 0 };
	enum rc rc;

	if (rv->caller != 0)
		return RC_OK;
	rv->peer = request_param(job->rq, "REMOTE_ADDR");
	rv->method = method_word(job->rq->method);
	rv->instance = job->rq->instance + strlen("urn:uuid:");
	rc = caller_number(
	    secret, job->scope.data, rv->peer, job->rule->path, &rv->caller);
	if (rc == RC_OK && is_of_browser(job)) {
		/* Without cookies it is like no other. */
		uuid_random(job->cookie);
		if (cookie != NULL && *cookie != '\0' &&
		    (rc = caller_cookie(secret, cookie, bytes)) == RC_OK)
			uuid_text(bytes, job->cookie);
		rv->cookie = job->cookie;
	}
	if (rv->peer != NULL &&
	    (*rv->peer == '\0' || strlen(rv->peer) > LIMIT_PEER))
		rv->peer = NULL;
	return rc;
}

/*
 * Reads the record.  If the record has another spec than the route's, the
 * fingerprint is made again by that spec, which the reservation then keeps:
 * this request is compared, and reserved, in the way of the first request.
 */
static enum rc
reserve_look(struct job *job, enum decision *decision)
{
	struct store_reservation *rv = &job->reservation;
	const int64_t now = store_now(job->engine->store);
	struct record *record = &job->record;
	enum decide_match match;
	enum rc rc;

	record_free(record);
	store_inline_answer_free(&job->inline_answer);
	job->may_have_acted = true;
	rc = store_lookup(
	    job->engine->store, &rv->identity, record, &job->inline_answer);
	if (rc == RC_NOTFOUND || (rc == RC_OK && decide_is_past(record, now))) {
		reserve_note_absent(job);
		*decision = DECIDE_RUN;
		return RC_OK;
	}
	if (rc != RC_OK)
		return rc;
	record_check(record);
	if ((record->cookie[0] != '\0' || is_of_browser(job)) &&
	    (rc = note_caller(job)) != RC_OK)
		return rc;
	match = decide_match(record, rv->fingerprint_spec, rv->fingerprint);
	if (match == DECIDE_OTHER_SPEC) {
		buf_clear(&job->fingerprint_spec);
		if ((rc = buf_adds(&job->fingerprint_spec,
			 record->fingerprint_spec)) != RC_OK)
			return rc;
		rv->fingerprint_spec = job->fingerprint_spec.data;
		rc = engine_fingerprint(job, rv->fingerprint_spec);
		if (rc != RC_OK)
			return rc;
		match =
		    decide_match(record, rv->fingerprint_spec, rv->fingerprint);
	}
	*decision = decide(record, decide_is_mine(record, rv->peer, rv->cookie),
	    match == DECIDE_SAME, now);
	job->again = *decision == DECIDE_RUN;
	note_acted(job);
	job->attempts = record->attempt;
	return RC_OK;
}

/* Takes the lease or a place in the queue, or reads the record in the way. */
static enum rc
reserve_take(struct job *job, enum decision *decision)
{
	struct store_reservation *rv = &job->reservation;
	struct store *store = job->engine->store;
	struct store_lease *lease = &job->attempt.lease;
	enum rc rc = note_caller(job);

	record_free(&job->record);
	rv->max_kept = job->conf->max_kept;
	rv->max_store = job->conf->max_store;
	if (rc == RC_OK && (job->later || rv->reconcile_delay != 0))
		rc = attempt_keep_request(&job->attempt, rv);
	if (rc == RC_OK && job->later)
		rc = store_accept(store, rv, job->conf->async_queue,
		    &job->ticket, decision, &job->record);
	else if (rc == RC_OK &&
	    (rc = attempt_prepare(&job->attempt, rv)) == RC_OK)
		rc = store_reserve(store, rv, lease, decision, &job->record);
	/* An attempt that was not seen may have acted. */
	job->attempt.facts.acted_before =
	    job->acted_before || lease->attempt != job->attempts + 1;
	if (rc == RC_OK && *decision != DECIDE_RUN && job->record.id != 0)
		note_acted(job);
	return rc;
}

/*
 * The same without a look at the record before, which the store does only where
 * it expects none: see struct store_reservation.  DECIDE_BUSY: nothing was
 * done.  Not for routes whose requests must pass checks between the two, or
 * prepare more than a lease.
 */
static enum rc
reserve_unseen(struct job *job, enum decision *decision)
{
	struct store_reservation *rv = &job->reservation;
	const struct conf_route *rule = job->rule;
	enum rc rc;

	*decision = DECIDE_BUSY;
	if (job->later || rule->key_rate != 0 ||
	    rule->request_timestamp != NULL || rv->reconcile_delay != 0 ||
	    rv->on_crash == CONF_CRASH_RESUME)
		return RC_OK;
	rv->unseen = true;
	rc = reserve_take(job, decision);
	rv->unseen = false;
	if (rc == RC_OK && *decision == DECIDE_RUN) {
		reserve_note_absent(job);
		job->attempt.facts.acted_before = false;
	}
	return rc;
}

/*
 * Recovers the key if the process that has its lease is dead.  True: read the
 * record again.  If processes of the attempt still live, the key is not
 * recovered.  Each key is tried only now and then, because a try reads the list
 * of all processes.
 */
static bool
recover(struct job *job)
{
	struct engine *engine = job->engine;
	const struct record *record = &job->record;
	struct engine_recovery *last =
	    &engine->recovery[record->id % ENGINE_RECOVERIES];
	int n;

	if (!store_owner_is_dead(engine->store, record->owner) ||
	    (atomic_load(&last->id) == record->id &&
		clock_mono() < atomic_load(&last->again_mono)))
		return false;
	if (maintenance_recover_key(engine->store, record, &n) != RC_OK ||
	    n == 0) {
		atomic_store(&last->again_mono, clock_mono() + RECOVER_PAUSE);
		atomic_store(&last->id, record->id);
	}
	return true;
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
			    limit, clock_mono()) > 0;
	return job->too_fast;
}

/*
 * Reads the record, and gets the stored response, the lease, or a place in the
 * queue.  If another request was faster, reads the record again.
 */
static enum rc
look_and_take(struct job *job, enum decision *decision)
{
	const struct store_reservation *rv = &job->reservation;
	enum rc rc = reserve_unseen(job, decision);
	const bool locked = rc == RC_BUSY;
	int tries;

	/* What is locked can still be read: a stored response is sent, and a
	 * new key is known to be new. */
	if (!locked && (rc != RC_OK || *decision == DECIDE_RUN))
		return rc;
	for (tries = 0; tries < RESERVE_TRIES; tries++) {
		if ((rc = reserve_look(job, decision)) != RC_OK)
			return rc;
		if (*decision == DECIDE_REPLAY) {
			rc = respond_fetch(job->engine->store, &rv->identity,
			    &job->record, &job->inline_answer, job->answer);
			if (rc != RC_NOTFOUND)
				return rc;
			continue;
		}
		if (*decision == DECIDE_BUSY && recover(job))
			continue;
		if (*decision == DECIDE_BUSY || *decision == DECIDE_NOT_KEPT)
			return store_make_durable(
			    job->engine->store, &job->record);
		if (*decision != DECIDE_RUN)
			return RC_OK;
		if (locked)
			return RC_BUSY;
		/* A client may fetch its answer however late; only a run can
		 * be a second one. */
		job->age = route_age(job->rule, job->rq, clock_wall());
		if (job->age != AGE_GOOD) {
			*decision = DECIDE_OLD;
			return RC_OK;
		}
		if ((rc = note_caller(job)) != RC_OK)
			return rc;
		if (is_too_fast(job)) {
			*decision = DECIDE_CROWDED;
			return RC_OK;
		}
		rc = reserve_take(job, decision);
		if (rc != RC_OK || *decision == DECIDE_RUN ||
		    decide_is_limit(*decision))
			return rc;
	}
	return RC_BUSY;
}

static bool
may_wait(struct job *job)
{
	return job->rule->concurrent == CONF_CONCURRENT_WAIT &&
	    !job->record.accepted && engine_begin_waiting(job->engine);
}

/* Waits until a key has been settled, or it is time to read again.  False: the
 * request's time is up. */
static bool
reserve_wait_for_news(struct store *store, uint64_t *generation, int64_t until)
{
	const int64_t look = clock_mono() + WAIT_LOOK;

	return store_wait(store, generation, look < until ? look : until) ||
	    clock_mono() < until;
}

/* The metric of each decision; a released key that runs again is the
 * exception. */
static const enum metrics_id counted[] = {
	[DECIDE_RUN] = METRICS_RESERVE_CREATED,
	[DECIDE_REPLAY] = METRICS_RESERVE_REPLAY,
	[DECIDE_NOT_KEPT] = METRICS_RESERVE_REPLAY,
	[DECIDE_GONE] = METRICS_RESERVE_REPLAY,
	[DECIDE_BUSY] = METRICS_RESERVE_IN_PROGRESS,
	[DECIDE_OF_ANOTHER] = METRICS_RESERVE_KEY_MISUSE,
	[DECIDE_MISMATCH] = METRICS_RESERVE_KEY_MISUSE,
	[DECIDE_UNKNOWN] = METRICS_RESERVE_UNKNOWN,
};

/* Whether the requests of all callers, and not of this one, leave no room. */
static bool
is_kept_full(const struct job *job)
{
	const struct store_reservation *rv = &job->reservation;
	struct metrics_gauges g;

	return store_gauges(job->engine->store, &g) != RC_OK ||
	    (uint64_t)g.value[METRICS_KEPT_BYTES] + rv->environment_len +
		rv->body_len >
	    rv->max_kept;
}

/* Notes a limit that was reached. */
static void
note_limit(struct job *job, enum decision decision)
{
	if (decision == DECIDE_NO_ROOM)
		engine_note_refused(
		    job, PROBLEM_OVERLOADED, "max_kept", is_kept_full(job));
	else if (decision == DECIDE_FULL)
		engine_note_refused(job, PROBLEM_OVERLOADED, "max_store", true);
	else if (decision != DECIDE_OLD)
		engine_note_refused(job, PROBLEM_TOO_MANY_KEYS,
		    decision == DECIDE_OPEN ? "max_open_keys"
			: job->too_fast     ? "key_rate"
					    : "max_active_keys",
		    false);
}

/* A new key was taken. */
static void
note_taken(struct job *job)
{
	char caller[CALLER_NAME_LEN + 1];

	recent_count(RECENT_FIRST);
	if (!recent_refused_any())
		return;
	caller_name(
	    job->scope.data, request_param(job->rq, "REMOTE_ADDR"), caller);
	recent_refused_over(job->rule->path, caller);
}

/* Refuses a request that a limit keeps from running. */
static bool
refuse_limit(struct job *job, enum decision decision)
{
	note_limit(job, decision);
	if (decision == DECIDE_OLD)
		return engine_refusef(job, PROBLEM_REQUEST_TOO_OLD,
		    "The field %s %s.", job->rule->request_timestamp,
		    route_age_text(job->age));
	if (decision == DECIDE_NO_ROOM)
		return engine_refusef(job, PROBLEM_OVERLOADED,
		    "Too many requests are kept; this one was not begun: "
		    "max_kept is %" PRIu64 " bytes, of which one caller may "
		    "fill half.",
		    job->conf->max_kept);
	if (decision == DECIDE_FULL)
		return engine_refusef(job, PROBLEM_OVERLOADED,
		    "The key store is full; this request was not begun: "
		    "max_store is %" PRIu64 " bytes.",
		    job->conf->max_store);
	if (decision == DECIDE_OPEN)
		return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
		    "Too many requests of this caller have an outcome that "
		    "is not known: max_open_keys is %u.",
		    job->rule->max_open_keys);
	if (job->too_fast)
		return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
		    "This caller uses new keys too fast: key_rate is %u a "
		    "second.",
		    job->rule->key_rate);
	return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
	    "This caller has too many requests in progress: "
	    "max_active_keys is %u.",
	    job->rule->max_active_keys);
}

bool
engine_reserve(struct job *job, enum decision *decision)
{
	uint64_t generation = 0;
	int64_t until;
	enum rc rc;

	if (atomic_load(&job->engine->draining))
		return engine_refuse(job, PROBLEM_OVERLOADED,
		    "The server is being stopped; this request ran nothing.");
	rc = look_and_take(job, decision);
	if (rc == RC_OK && *decision == DECIDE_BUSY && may_wait(job)) {
		until = clock_mono() + job->rule->wait_time;
		while (rc == RC_OK && *decision == DECIDE_BUSY &&
		    !atomic_load(&job->engine->draining) &&
		    reserve_wait_for_news(
			job->engine->store, &generation, until)) {
			FAULT(WAIT_OVER);
			rc = look_and_take(job, decision);
		}
		engine_end_waiting(job->engine);
	}
	if (rc != RC_OK)
		return engine_refuse_store(job, rc);
	if (job->ticket.full) {
		engine_note_refused(
		    job, PROBLEM_OVERLOADED, "async_queue", false);
		return engine_refusef(job, PROBLEM_OVERLOADED,
		    "Too many accepted requests wait to be run: async_queue is "
		    "%u, and one caller may fill half of it.",
		    job->conf->async_queue);
	}
	if (decide_is_limit(*decision))
		return refuse_limit(job, *decision);
	assert((size_t)*decision < sizeof(counted) / sizeof(counted[0]));
	if (*decision == DECIDE_RUN && !job->again)
		note_taken(job);
	else if (*decision == DECIDE_REPLAY)
		recent_count(RECENT_REPLAY);
	metrics_count_route(job->rule->metrics,
	    *decision == DECIDE_RUN && job->again ? METRICS_RESERVE_FAILED_RETRY
						  : counted[*decision]);
	if (*decision != DECIDE_RUN)
		maintenance_repeat(job->scope.data,
		    counted[*decision] == METRICS_RESERVE_KEY_MISUSE);
	return true;
}
