/*
 * store: how much one caller may take: keys in progress, keys with an open
 * outcome, places in the queue; and how much is kept for all.
 */
#include "config.h"

#include <pthread.h>

#include "caller.h"
#include "store_fixture.h"

/* By its first letter. */
static int64_t
caller_of(const char *scope)
{
	return ((int64_t)scope[0] << 22) + 1;
}

static enum decision
try_reserve(struct store *s, const char *scope, const char *key,
    unsigned max_active, struct store_lease *lease)
{
	struct store_reservation r = reservation(key);
	struct store_lease unused;
	enum decision d = DECIDE_GONE;
	struct record found;

	r.identity.scope = scope;
	r.caller = caller_of(scope);
	r.max_active = max_active;
	assert_int_equal(
	    store_reserve(s, &r, lease != NULL ? lease : &unused, &d, &found),
	    RC_OK);
	if (d == DECIDE_CROWDED)
		assert_true(
		    found.id == 0 || found.state == RECORD_FAILED_RETRYABLE);
	record_free(&found);
	return d;
}

STORE_TEST(key_above_the_limit_of_its_caller_does_not_run)
{
	struct store_lease lease;

	assert_int_equal(try_reserve(store, "ann", "a", 2, &lease), DECIDE_RUN);
	assert_int_equal(try_reserve(store, "ann", "b", 2, NULL), DECIDE_RUN);
	assert_int_equal(
	    try_reserve(store, "ann", "c", 2, NULL), DECIDE_CROWDED);
	/* what is there already is answered as ever */
	assert_int_equal(try_reserve(store, "ann", "a", 2, NULL), DECIDE_BUSY);
	/* another caller, another limit, none */
	assert_int_equal(try_reserve(store, "bob", "c", 2, NULL), DECIDE_RUN);
	assert_int_equal(try_reserve(store, "ann", "d", 3, NULL), DECIDE_RUN);
	assert_int_equal(try_reserve(store, "ann", "e", 0, NULL), DECIDE_RUN);
	assert_true(row_is("c", RECORD_IN_PROGRESS));

	settle(&lease, RECORD_COMPLETED);
	assert_int_equal(try_reserve(store, "ann", "c", 4, NULL), DECIDE_RUN);
	assert_int_equal(
	    try_reserve(store, "ann", "f", 4, NULL), DECIDE_CROWDED);
}

STORE_TEST(only_keys_in_progress_count)
{
	static const enum record_state states[] = { RECORD_COMPLETED,
		RECORD_FAILED_RETRYABLE, RECORD_UNKNOWN };
	struct store_lease lease;
	char key[8];

	for (size_t i = 0; i < COUNT(states); i++) {
		(void)snprintf(key, sizeof(key), "%zu", i);
		assert_int_equal(
		    try_reserve(store, "ann", key, 1, &lease), DECIDE_RUN);
		settle(&lease, states[i]);
	}
	/* Answered by the handler itself, and not sealed yet. */
	assert_int_equal(
	    try_reserve(store, "ann", "own", 1, &lease), DECIDE_RUN);
	respond(&lease, NULL, 0);
	assert_int_equal(
	    try_reserve(store, "ann", "last", 1, NULL), DECIDE_RUN);
}

STORE_TEST(nothing_above_the_limit_is_accepted)
{
	struct store_reservation r = reservation("job");
	struct store_ticket ticket;
	struct record found;
	enum decision d;

	r.caller = caller_of("alice");
	r.max_active = 1;
	r.environment = "A=B";
	r.environment_len = 4;
	assert_int_equal(try_reserve(store, "alice", "a", 0, NULL), DECIDE_RUN);
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_CROWDED);
	record_free(&found);
	assert_int_equal(count_of(REQUESTS), 0);
	r.max_active = 2;
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_RUN);
	record_free(&found);
	/* It waits, and is not in progress. */
	assert_int_equal(try_reserve(store, "alice", "b", 2, NULL), DECIDE_RUN);
}

static enum decision
try_new(const struct store_reservation *r)
{
	struct store_lease lease;
	struct record found;
	enum decision d = DECIDE_GONE;

	assert_int_equal(store_reserve(store, r, &lease, &d, &found), RC_OK);
	record_free(&found);
	return d;
}

STORE_TEST(new_key_of_a_caller_with_many_open_outcomes_does_not_run)
{
	struct store_reservation r = reservation("new");

	put("released", RECORD_FAILED_RETRYABLE);
	put("one", RECORD_UNKNOWN);
	put("two", RECORD_UNKNOWN);
	r.max_open = 3;
	r.identity.key = "below";
	assert_int_equal(try_new(&r), DECIDE_RUN);
	set_state("two", RECORD_DEAD_LETTER);
	r.max_open = 2;
	r.identity.key = "new";
	assert_int_equal(try_new(&r), DECIDE_OPEN);
	r.identity.path = "/other";
	assert_int_equal(try_new(&r), DECIDE_OPEN);
	r.identity.scope = "bob"; /* whatever the scope */
	assert_int_equal(try_new(&r), DECIDE_OPEN);
	r.identity.scope = "alice";
	r.identity.path = "/payments";
	/* those known are answered and run as ever */
	r.identity.key = "one";
	assert_int_equal(try_new(&r), DECIDE_UNKNOWN);
	r.identity.key = "released";
	assert_int_equal(try_new(&r), DECIDE_RUN);
	r.identity.key = "new";
	r.caller++;
	assert_int_equal(try_new(&r), DECIDE_RUN);
}

static int64_t
kept(void)
{
	int64_t n = kept_bytes();

	assert_int_equal(n, bytes_of_requests());
	return n;
}

STORE_TEST(request_above_max_kept_is_not_begun)
{
	struct store_reservation r = reservation("a");
	struct store_ticket ticket;
	struct store_lease lease;
	struct record found;
	enum decision d;

	r.environment = "A=B";
	r.environment_len = 4;
	r.body = "12345678901234567890";
	r.body_len = 20;
	r.reconcile_delay = 1;
	r.max_kept = 50;
	assert_int_equal(store_reserve(store, &r, &lease, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_RUN);
	assert_int_equal(kept(), 24);
	/* Of another caller: one alone may fill half. */
	r.identity.key = "b";
	assert_int_equal(try_new(&r), DECIDE_NO_ROOM);
	r.caller += INT64_C(1) << CALLER_ROUTE_BITS;
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_RUN);
	assert_int_equal(kept(), 48);
	r.identity.key = "c";
	r.caller += INT64_C(1) << CALLER_ROUTE_BITS;
	assert_int_equal(try_new(&r), DECIDE_NO_ROOM);
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_NO_ROOM);
	assert_int_equal(kept(), 48);
	/* what keeps nothing is not held up */
	reserve("d");
	settle(&lease, RECORD_COMPLETED);
	assert_int_equal(kept(), 24);
	assert_int_equal(try_new(&r), DECIDE_RUN);
	assert_int_equal(kept(), 48);
}

/* kept() fails if the count and the requests differ. */
STORE_TEST(a_planted_count_of_kept_bytes_holds_up_no_outcome)
{
	static const int64_t planted[] = { INT64_MIN, -1, INT64_MAX };
	struct store_reservation r = reservation("a");
	struct store_lease lease;
	struct record found;
	enum decision d;

	r.environment = "A=B";
	r.environment_len = 4;
	r.body = "12345678901234567890";
	r.body_len = 20;
	r.reconcile_delay = 1;
	r.max_kept = 50;
	for (size_t i = 0; i < COUNT(planted); i++) {
		assert_int_equal(
		    store_reserve(store, &r, &lease, &d, &found), RC_OK);
		assert_int_equal(d, DECIDE_RUN);
		set_value(NULL, M_KEPT_BYTES, planted[i]);
		settle(&lease, RECORD_COMPLETED);
		assert_true(kept_bytes() >= 0);
		/* A start counts them anew. */
		store_close(store);
		store = open_store();
		assert_int_equal(kept(), 0);
		delete_all(KEYS);
	}
}

/* A key that was accepted and released keeps its request. */
STORE_TEST(request_may_take_the_place_of_the_same_keys)
{
	struct store_reservation r = reservation("a");
	struct store_outcome *s;
	struct store_ticket ticket;
	struct store_lease lease;
	struct record job;
	struct record found;
	enum decision d;

	r.environment = "A=B";
	r.environment_len = 4;
	r.max_kept = 6;
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(store_job_next(store, &job), RC_OK);
	assert_int_equal(store_job_start(store, &job, &r, &lease), RC_OK);
	record_free(&job);
	s = outcome(RECORD_FAILED_RETRYABLE);
	s->requeue = -1;
	assert_int_equal(finish(&lease, s), RC_OK);
	assert_int_equal(kept(), 4);
	assert_int_equal(
	    store_accept(store, &r, 10, &ticket, &d, &found), RC_OK);
	assert_int_equal(d, DECIDE_RUN);
	assert_false(ticket.full);
	assert_int_equal(kept(), 4);
}

/* --- requests of many threads, which may share a transaction -------------- */

#define CALLERS  16
#define ROOM_FOR 5
#define ROUNDS   4

static pthread_barrier_t together;

static void *
keep_one(void *arg)
{
	const intptr_t me = (intptr_t)arg;
	struct store_reservation r;
	char key[24];

	(void)snprintf(key, sizeof(key), "%d", (int)me);
	r = reservation(key);
	r.caller = (int64_t)(me + 1) << CALLER_ROUTE_BITS;
	r.environment = "A=B";
	r.environment_len = 4;
	r.body = "12345678901234567890";
	r.body_len = 20;
	r.reconcile_delay = 1;
	r.max_kept = (uint64_t)ROOM_FOR * 24;
	(void)pthread_barrier_wait(&together);
	return (void *)(intptr_t)(try_new(&r) == DECIDE_RUN);
}

static int
keep_together(int first)
{
	pthread_t threads[CALLERS];
	void *runs;
	int n = 0;

	pthread_barrier_init(&together, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		threads[i] =
		    start_thread(keep_one, (void *)(intptr_t)(first + i));
	for (int i = 0; i < CALLERS; i++) {
		assert_int_equal(pthread_join(threads[i], &runs), 0);
		n += runs != NULL;
	}
	pthread_barrier_destroy(&together);
	return n;
}

/* A store that writes by one connection has them in few transactions. */
STORE_TEST(requests_of_many_threads_stay_within_max_kept)
{
	(void)reserve("first");
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(keep_together(i * CALLERS), ROOM_FOR);
		assert_int_equal(kept(), ROOM_FOR * 24);
		forget_requests();
	}
}
