/*
 * store: how much one caller may take: keys in progress, keys with an open
 * outcome, places in the queue; and how much is kept for all.
 */
#include "config.h"

#include "scope.h"
#include "store_fixture.h"

/* By its first letter. */
static int64_t
caller_of(const char *scope)
{
	return ((int64_t)scope[0] << 22) + 1;
}

static struct store_reservation
limited(const char *scope, const char *key, unsigned max_active)
{
	struct store_reservation r = reservation(key);

	r.identity.scope = scope;
	r.caller = caller_of(scope);
	r.max_active = max_active;
	return r;
}

static void
assert_within(const char *scope, const char *key, unsigned max_active,
    enum decision wanted)
{
	struct store_reservation r = limited(scope, key, max_active);

	assert_int_equal(decision_as(&r), wanted);
}

/* Its request has 24 bytes. */
static struct store_reservation
kept_within(const char *key, uint64_t max_kept)
{
	struct store_reservation r = reservation(key);

	give_request(&r, "12345678901234567890", 20);
	r.reconcile_delay = 1;
	r.max_kept = max_kept;
	return r;
}

/* What becomes of a job. */
static enum decision
accept_it(const struct store_reservation *r)
{
	enum decision d = DECIDE_GONE;
	struct store_ticket ticket;
	struct record found;

	assert_ok(store_accept(store, r, 10, &ticket, &d, &found));
	assert_false(d == DECIDE_RUN && ticket.full);
	record_free(&found);
	return d;
}

STORE_TEST(key_above_the_limit_of_its_caller_does_not_run)
{
	struct store_reservation r = limited("ann", "a", 2);
	struct store_lease lease = reserve_as(&r);

	assert_within("ann", "b", 2, DECIDE_RUN);
	assert_within("ann", "c", 2, DECIDE_CROWDED);
	/* what is there already is answered as ever */
	assert_within("ann", "a", 2, DECIDE_BUSY);
	/* another caller, another limit, none */
	assert_within("bob", "c", 2, DECIDE_RUN);
	assert_within("ann", "d", 3, DECIDE_RUN);
	assert_within("ann", "e", 0, DECIDE_RUN);
	assert_true(row_is("c", RECORD_IN_PROGRESS));

	settle(&lease, RECORD_COMPLETED);
	assert_within("ann", "c", 4, DECIDE_RUN);
	assert_within("ann", "f", 4, DECIDE_CROWDED);
}

STORE_TEST(lease_whose_process_is_lost_counts_until_it_is_recovered)
{
	struct store_reservation r = limited("ann", "a", 1);

	reserve_as(&r);
	set_value("a", K_LOCKED_UNTIL, 1); /* long past */
	reopen();
	assert_within("ann", "b", 1, DECIDE_CROWDED);
	assert_int_equal(sweep(store), 1);
	assert_within("ann", "b", 1, DECIDE_RUN);
}

STORE_TEST(only_keys_in_progress_count)
{
	struct store_reservation r;
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(run_ends); i++) {
		r = limited("ann", record_state_name(run_ends[i]), 1);
		lease = reserve_as(&r);
		settle(&lease, run_ends[i]);
	}
	/* Answered by the handler itself, and not sealed yet. */
	r = limited("ann", "own", 1);
	lease = reserve_as(&r);
	respond(&lease, NULL, 0);
	assert_within("ann", "last", 1, DECIDE_RUN);
}

STORE_TEST(new_key_of_a_caller_with_many_open_outcomes_does_not_run)
{
	struct store_reservation r = reservation("new");

	put("released", RECORD_FAILED_RETRYABLE);
	put("one", RECORD_UNKNOWN);
	put("two", RECORD_UNKNOWN);
	r.max_open = 3;
	r.identity.key = "below";
	assert_int_equal(decision_as(&r), DECIDE_RUN);
	set_state("two", RECORD_DEAD_LETTER);
	r.max_open = 2;
	r.identity.key = "new";
	assert_int_equal(decision_as(&r), DECIDE_OPEN);
	r.identity.path = "/other";
	assert_int_equal(decision_as(&r), DECIDE_OPEN);
	r.identity.scope = "bob"; /* whatever the scope */
	assert_int_equal(decision_as(&r), DECIDE_OPEN);
	r.identity.scope = "alice";
	r.identity.path = "/payments";
	/* those known are answered and run as ever */
	r.identity.key = "one";
	assert_int_equal(decision_as(&r), DECIDE_UNKNOWN);
	r.identity.key = "released";
	assert_int_equal(decision_as(&r), DECIDE_RUN);
	r.identity.key = "new";
	r.caller++;
	assert_int_equal(decision_as(&r), DECIDE_RUN);
}

static int64_t
kept(void)
{
	int64_t n = kept_bytes();

	assert_int_equal(n, bytes_of_requests());
	return n;
}

/* kept() fails if the count and the requests differ. */
STORE_TEST(a_planted_count_of_kept_bytes_holds_up_no_outcome)
{
	static const int64_t planted[] = { INT64_MIN, -1, INT64_MAX };
	struct store_reservation r = kept_within("a", 50);
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(planted); i++) {
		lease = reserve_as(&r);
		set_value(NULL, M_KEPT_BYTES, planted[i]);
		settle(&lease, RECORD_COMPLETED);
		assert_true(kept_bytes() >= 0);
		/* A start counts them anew. */
		reopen();
		assert_int_equal(kept(), 0);
		delete_all(KEYS);
	}
}

/* A key that was accepted and released keeps its request. */
STORE_TEST(request_may_take_the_place_of_the_same_keys)
{
	struct store_reservation r = reservation("a");
	struct store_outcome *s = outcome(RECORD_FAILED_RETRYABLE);
	struct store_lease lease;

	give_request(&r, NULL, 0);
	r.max_kept = 6;
	assert_int_equal(accept_it(&r), DECIDE_RUN);
	assert_ok(start_next(&r, &lease));
	s->requeue = -1;
	assert_ok(finish(&lease, s));
	assert_int_equal(kept(), 4);
	assert_int_equal(accept_it(&r), DECIDE_RUN);
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
	struct store_reservation r =
	    kept_within(textf("%d", (int)me), ROOM_FOR * 24);

	r.caller = (int64_t)(me + 1) << CALLER_ROUTE_BITS;
	(void)pthread_barrier_wait(&together);
	return (void *)(intptr_t)(decision_as(&r) == DECIDE_RUN);
}

static int
keep_together(int first)
{
	pthread_t threads[CALLERS];
	int n = 0;

	pthread_barrier_init(&together, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		threads[i] =
		    start_thread(keep_one, (void *)(intptr_t)(first + i));
	for (int i = 0; i < CALLERS; i++)
		n += end_thread(threads[i]) != NULL;
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
