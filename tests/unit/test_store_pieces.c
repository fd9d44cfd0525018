/*
 * store: large answers and requests, which are stored in pieces.
 */
#include "config.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "store_fixture.h"
#include "store_body.h"

/* A body of a few pieces. */
#define SOME         1000000
#define PIECES_OF(n) (((n) + STORE_PIECE - 1) / STORE_PIECE)

/* In place of the committer's: so many of the next pieces are held up once they
 * are committed. */
static atomic_int to_hold, held;
static sem_t gate;

enum rc __real_committer_do(struct committer *c, struct write *w);
enum rc __wrap_committer_do(struct committer *c, struct write *w);
enum rc
__wrap_committer_do(struct committer *c, struct write *w)
{
	const bool large = (w->flags & WRITE_LARGE) != 0;
	const enum rc rc = __real_committer_do(c, w);

	if (large && rc == RC_OK && atomic_fetch_sub(&to_hold, 1) > 0) {
		atomic_fetch_add(&held, 1);
		while (sem_wait(&gate) == -1)
			;
	}
	return rc;
}

/* Each of the next n bodies stops before it is stored whole. */
static void
hold(int n)
{
	atomic_store(&held, 0);
	sem_init(&gate, 0, 0);
	atomic_store(&to_hold, n);
}

static void
await_held(int n)
{
	AWAIT(atomic_load(&held) == n);
	assert_true(count_of(PIECES) >= n);
}

static void
let_go(void)
{
	for (int i = atomic_load(&held); i > 0; i--)
		sem_post(&gate);
}

struct settler {
	pthread_t thread;
	struct store_lease lease;
	struct store_outcome *outcome;
	enum rc rc;
};

static void *
settle_it(void *arg)
{
	struct settler *me = arg;

	me->rc = finish(&me->lease, me->outcome);
	return NULL;
}

static void
begin(struct settler *me, const char *key, size_t length)
{
	me->lease = reserve(key);
	me->outcome = outcome(RECORD_COMPLETED);
	give_body(me->outcome, length);
	me->thread = start_thread(settle_it, me);
}

static bool
bodies_are_well(void)
{
	return doctor_says("bodies") == '+' && doctor_says("requests") == '+';
}

STORE_TEST(others_commit_while_a_large_answer_is_being_stored)
{
	struct settler large;

	hold(1);
	begin(&large, "large", SOME);
	await_held(1);
	put("small", RECORD_COMPLETED);
	/* both are durable, and it is not */
	assert_int_equal(state_of("large"), RECORD_IN_PROGRESS);
	assert_true(bodies_are_well());
	let_go();
	end_thread(large.thread);
	assert_ok(large.rc);
	assert_true(answer_is(large.lease.id, SOME));
	assert_true(bodies_are_well());
}

STORE_TEST(large_answers_at_once_do_not_mix)
{
	struct settler s[6];

	for (size_t i = 0; i < COUNT(s); i++)
		begin(&s[i], textf("%zu", i), SOME + i);
	for (size_t i = 0; i < COUNT(s); i++) {
		end_thread(s[i].thread);
		assert_ok(s[i].rc);
		assert_true(answer_is(s[i].lease.id, SOME + i));
	}
}

/* Its token is not the key's any more. */
STORE_TEST(an_attempt_that_lost_its_lease_leaves_no_piece)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *s = outcome(RECORD_COMPLETED);

	give_body(s, SOME);
	spoil("k", K_TOKEN, "'0123456789abcdef0123456789abcdef'");
	assert_int_equal(finish(&lease, s), RC_LOST);
	assert_int_equal(count_of(PIECES), 0);
	assert_int_equal(state_of("k"), RECORD_IN_PROGRESS);
}

STORE_TEST(doctor_finds_pieces_that_no_attempt_needs)
{
	reserve("k");
	assert_true(bodies_are_well());
	plant_piece(value_of("k", K_ID), 1);
	assert_false(bodies_are_well());
}

/* --- requests ------------------------------------------------------------- */

struct requester {
	pthread_t thread;
	const char *key;
	unsigned char *body;
	size_t length;
	bool accept;
	/* what became of it */
	enum rc rc;
	enum decision decision;
	struct store_lease lease;
};

static void *
request_it(void *arg)
{
	static const struct store_attempt attempt = { -1, -1, 1, 1 };
	struct store_reservation r;
	struct requester *me = arg;
	struct store_ticket ticket;
	struct record found;

	r = reservation(me->key);
	give_request(&r, me->body, me->length);
	r.max_kept = 3 * SOME / 2;
	if (!me->accept) {
		r.attempt = &attempt;
		r.reconcile_delay = HOUR;
	}
	me->rc = me->accept
	    ? store_accept(store, &r, 10, &ticket, &me->decision, &found)
	    : store_reserve(store, &r, &me->lease, &me->decision, &found);
	record_free(&found);
	return NULL;
}

static void
send_request(struct requester *me, const char *key, size_t length, bool accept)
{
	memset(me, 0, sizeof(*me));
	me->key = key;
	me->length = length;
	me->accept = accept;
	me->body = make_bytes(length);
	me->thread = start_thread(request_it, me);
}

static void
answered(struct requester *me)
{
	end_thread(me->thread);
	free(me->body);
}

static bool
stored_is(const char *key, size_t length)
{
	return request_is(value_of(key, K_ID), "A=B", 4, (int64_t)length);
}

STORE_TEST(others_commit_while_a_large_request_is_stored)
{
	struct requester large;
	struct store_lease small;
	const char *key;

	for (int accept = 0; accept < 2; accept++) {
		key = accept ? "accepted" : "reserved";
		hold(1);
		send_request(&large, key, SOME, accept != 0);
		await_held(1);
		small = reserve("small");
		settle_for(&small, RECORD_COMPLETED, 0);
		/* both are durable, and it is not: nothing may run */
		assert_int_equal(state_of(key), RECORD_NONE);
		assert_int_equal(count_of(UNNAMED), 1);
		assert_true(bodies_are_well());
		let_go();
		answered(&large);
		assert_ok(large.rc);
		assert_int_equal(large.decision, DECIDE_RUN);
		assert_int_equal(state_of(key),
		    accept ? RECORD_PENDING : RECORD_IN_PROGRESS);
		assert_int_equal(count_of(UNNAMED), 0);
		assert_true(stored_is(key, SOME));
		assert_true(bodies_are_well());
		if (!accept) {
			settle_for(&large.lease, RECORD_COMPLETED, 0);
			assert_int_equal(count_of(PIECES), 0);
			assert_true(bodies_are_well());
		}
	}
}

STORE_TEST(of_two_requests_with_one_key_one_leaves_nothing)
{
	struct requester r[2];

	send_request(&r[0], "k", SOME, false);
	send_request(&r[1], "k", SOME, false);
	answered(&r[0]);
	answered(&r[1]);
	assert_ok(r[0].rc);
	assert_ok(r[1].rc);
	assert_true(
	    (r[0].decision == DECIDE_RUN) != (r[1].decision == DECIDE_RUN));
	assert_int_equal(count_of(UNNAMED), 0);
	assert_int_equal(count_of(PIECES), PIECES_OF(SOME));
	assert_true(stored_is("k", SOME));
	assert_true(bodies_are_well());
}

/* Both fit alone, but not together. */
STORE_TEST(a_request_that_is_being_stored_counts)
{
	struct requester r[2];

	hold(1);
	send_request(&r[0], "a", SOME, false);
	await_held(1);
	send_request(&r[1], "b", SOME, true);
	answered(&r[1]);
	assert_ok(r[1].rc);
	assert_int_equal(r[1].decision, DECIDE_NO_ROOM);
	let_go();
	answered(&r[0]);
	assert_int_equal(r[0].decision, DECIDE_RUN);
	assert_int_equal(count_of(UNNAMED), 0);
	assert_true(bodies_are_well());
}

STORE_TEST(what_a_dead_process_has_staged_is_recovered)
{
	plant_staged(-77, DEAD_OWNER, 300);
	plant_staged(-78, DEAD_OWNER, 500);
	plant_staged(-79, 1000000, 900);
	plant_piece(-77, 1);
	plant_piece(-77, 2);
	plant_piece(-78, 65535);
	set_value(NULL, M_KEPT_BYTES, 1700);
	assert_true(bodies_are_well());
	assert_int_equal(sweep(store), 0);
	assert_int_equal(count_of(UNNAMED), 0);
	assert_int_equal(count_of(PIECES), 0);
	assert_int_equal(kept_bytes(), 0);
}

STORE_TEST(what_a_living_process_has_staged_stays)
{
	struct store *other;
	struct requester r;

	other = open_store();
	hold(1);
	send_request(&r, "k", SOME, false);
	await_held(1);
	assert_int_equal(sweep(other), 0);
	let_go();
	answered(&r);
	assert_ok(r.rc);
	assert_true(stored_is("k", SOME));
	store_close(other);
}

STORE_TEST(doctor_finds_pieces_and_requests_that_do_not_match)
{
	struct requester r;

	plant_piece(-77, 1);
	assert_false(bodies_are_well());
	delete_all(PIECES);
	assert_true(bodies_are_well());
	send_request(&r, "k", SOME, false);
	answered(&r);
	assert_true(bodies_are_well());
	lose_last_piece();
	assert_false(bodies_are_well());
}

/* A handler that shares the store may have planted them.  They would be in
 * memory whole, or have no end. */
STORE_TEST(pieces_and_requests_of_no_length_of_ours_are_not_read)
{
	static void (*const plants[])(
	    void) = { join_pieces, plant_empty_piece, join_request };
	struct requester r;

	for (size_t i = 0; i < COUNT(plants); i++) {
		send_request(&r, "k", SOME, false);
		answered(&r);
		assert_ok(r.rc);
		assert_true(stored_is("k", SOME));
		plants[i]();
		assert_false(stored_is("k", SOME));
		settle_for(&r.lease, RECORD_COMPLETED, 0);
		forget_key(r.lease.id);
		delete_all(PIECES);
	}
}

/* A reader keeps the log from being truncated. */
STORE_TEST(a_request_that_has_begun_is_not_refused_for_a_long_log)
{
	struct store_options o = options();
	struct requester r;
	sqlite3 *reader;

	o.max_wal = 300 * 1024;
	reopen_with(o);
	reserve("other");
	reader = raw_open(file);
	raw_read(reader);
	send_request(&r, "k", SOME, false);
	answered(&r);
	assert_ok(r.rc);
	assert_int_equal(reserve_fails("new"), RC_LIMIT);
	sqlite3_close(reader);
	assert_true(stored_is("k", SOME));
}

/* --- answers to keys without a lease -------------------------------------- */

struct resolver {
	pthread_t thread;
	struct store *store;
	int64_t id;
	bool by_operator;
	struct store_outcome *outcome;
	enum rc rc;
};

static void *
resolve_it(void *arg)
{
	const struct store_tries tries = { .attempt = 1 };
	struct resolver *me = arg;

	me->rc = me->by_operator
	    ? store_resolve_by_operator(
		  me->store, me->id, tries.attempt, &me->outcome)
	    : store_resolve(me->store, me->id, &tries, &me->outcome);
	store_outcome_free(me->outcome);
	return NULL;
}

static void
assert_resolved(struct resolver *me, enum rc rc)
{
	end_thread(me->thread);
	assert_int_equal(me->rc, rc);
}

/* Begins to settle the key, with a body of that many bytes. */
static void
resolve(struct resolver *me, struct store *by, int64_t id, size_t length,
    bool by_operator)
{
	memset(me, 0, sizeof(*me));
	me->store = by;
	me->id = id;
	me->by_operator = by_operator;
	me->outcome = outcome(RECORD_COMPLETED);
	give_body(me->outcome, length);
	me->thread = start_thread(resolve_it, me);
}

static void
nothing_is_left(void)
{
	assert_int_equal(count_of(UNNAMED), 0);
	assert_int_equal(count_of(PIECES), 0);
	assert_int_equal(count_of(ANSWERS), 0);
	assert_true(bodies_are_well());
}

STORE_TEST(others_commit_while_a_key_without_a_lease_is_settled)
{
	struct store_lease lease, small;
	struct resolver r;

	for (int by_operator = 0; by_operator < 2; by_operator++) {
		lease = put("large", RECORD_UNKNOWN);
		hold(1);
		resolve(&r, store, lease.id, SOME, by_operator != 0);
		await_held(1);
		small = reserve("small");
		settle_for(&small, RECORD_COMPLETED, 0);
		/* both are durable, and it is not */
		assert_int_equal(state_of("large"), RECORD_UNKNOWN);
		assert_int_equal(count_of(UNNAMED), 1);
		assert_true(bodies_are_well());
		let_go();
		assert_resolved(&r, RC_OK);
		assert_true(answer_is(lease.id, SOME));
		assert_int_equal(count_of(UNNAMED), 0);
		assert_int_equal(count_of(ANSWERS), 1);
		assert_true(bodies_are_well());
		forget_key(lease.id);
		nothing_is_left();
	}
}

/* Of two processes: both have stored pieces when one of them wins. */
STORE_TEST(two_answers_to_one_key_do_not_mix)
{
	struct store *other = open_store();
	struct store_lease lease = put("k", RECORD_UNKNOWN);
	struct resolver r[2];
	bool first;

	hold(2);
	resolve(&r[0], store, lease.id, SOME, false);
	resolve(&r[1], other, lease.id, SOME - 1, true);
	await_held(2);
	assert_int_equal(count_of(UNNAMED), 2);
	assert_int_equal(state_of("k"), RECORD_UNKNOWN);
	assert_true(bodies_are_well());
	let_go();
	end_thread(r[0].thread);
	end_thread(r[1].thread);
	first = r[0].rc == RC_OK;
	assert_ok(r[first ? 0 : 1].rc);
	assert_int_equal(r[first ? 1 : 0].rc, RC_LOST);
	assert_true(answer_is(lease.id, first ? SOME : SOME - 1));
	assert_int_equal(count_of(UNNAMED), 0);
	assert_int_equal(count_of(PIECES), PIECES_OF(SOME));
	assert_int_equal(count_of(ANSWERS), 1);
	assert_true(bodies_are_well());
	store_close(other);
}

/* What else may become of the key while its answer is stored. */
static const struct store_tries by_operator = { 1, -1 };

static void
release_it(int64_t id)
{
	assert_ok(
	    resolve_with(id, by_operator, outcome(RECORD_FAILED_RETRYABLE)));
}

static void
run_it_again(int64_t id)
{
	release_it(id);
	put("k", RECORD_UNKNOWN);
}

static void
settle_it_shortly(int64_t id)
{
	struct store_outcome *o = outcome(RECORD_COMPLETED);

	give_body(o, 5000);
	assert_ok(resolve_with(id, by_operator, o));
}

STORE_TEST(an_answer_to_a_key_that_changed_meanwhile_leaves_nothing)
{
	static void (*const changes[])(int64_t) = { forget_key, release_it,
		run_it_again, settle_it_shortly };
	static const enum record_state after[] = { RECORD_NONE,
		RECORD_FAILED_RETRYABLE, RECORD_UNKNOWN, RECORD_COMPLETED };
	struct store_lease lease;
	struct resolver r;

	for (size_t i = 0; i < COUNT(changes); i++) {
		lease = put("k", RECORD_UNKNOWN);
		hold(1);
		resolve(&r, store, lease.id, SOME, i % 2 == 0);
		await_held(1);
		changes[i](lease.id);
		let_go();
		assert_resolved(&r, RC_LOST);
		assert_int_equal(state_of("k"), after[i]);
		if (after[i] == RECORD_COMPLETED)
			assert_true(answer_is(lease.id, 5000));
		if (after[i] != RECORD_NONE)
			forget_key(lease.id);
		nothing_is_left();
	}
}

/* As if recovery had taken this process for dead. */
STORE_TEST(pieces_of_an_answer_that_are_gone_are_stored_again)
{
	struct store_lease lease = put("k", RECORD_UNKNOWN);
	struct resolver r;

	hold(1);
	resolve(&r, store, lease.id, SOME, false);
	await_held(1);
	delete_all(UNNAMED);
	delete_all(PIECES);
	let_go();
	assert_resolved(&r, RC_OK);
	assert_true(answer_is(lease.id, SOME));
	assert_int_equal(count_of(UNNAMED), 0);
	assert_true(bodies_are_well());
}

STORE_TEST(a_settled_answer_expires_with_its_key)
{
	struct store_lease lease;
	struct resolver r;

	for (int i = 0; i < 2; i++) {
		lease = put("k", RECORD_UNKNOWN);
		if (i == 1) /* a marker stays */
			leave_marker("k", HOUR);
		resolve(&r, store, lease.id, SOME, true);
		assert_resolved(&r, RC_OK);
		pass_retention(NULL);
		assert_int_equal(expire(4), 1);
		nothing_is_left();
	}
}

STORE_TEST(doctor_finds_settled_answers_that_are_not_whole)
{
	struct store_lease lease = put("k", RECORD_UNKNOWN);
	struct resolver r;

	resolve(&r, store, lease.id, SOME, true);
	end_thread(r.thread);
	assert_true(doctor_says("bodies") == '+');
	lose_last_piece();
	assert_false(doctor_says("bodies") == '+');
	forget_key(lease.id);
	nothing_is_left();
	plant_answer(4711, -77);
	assert_false(doctor_says("bodies") == '+');
}
