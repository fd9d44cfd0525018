/*
 * store: keys whose outcome is unknown.  The stored request, when a reconciler
 * is due, verdicts of reconcilers and operators, and forgetting.
 */
#include "config.h"

#include <inttypes.h>

#include "store_fixture.h"

#define ENVIRONMENT "REQUEST_METHOD=POST\0QUERY_STRING=\0X=\303\244\xff\n"

/* A reservation whose request is kept; the body lives until the next one. */
static struct store_reservation
kept(const char *key, size_t length)
{
	static unsigned char *body;
	struct store_reservation r = reservation(key);

	free(body);
	body = make_bytes(length);
	r.reconcile_delay = 1;
	r.environment = ENVIRONMENT;
	r.environment_len = sizeof(ENVIRONMENT);
	r.body = length > 0 ? body : NULL;
	r.body_len = length;
	return r;
}

static struct store_lease
reserve_kept(const char *key, size_t length)
{
	struct store_reservation r = kept(key, length);

	return reserve_as(&r);
}

/* Bytes of a request of several pieces, in both stores. */
#define LARGE 1500000

/* Whether that is the request kept with a key. */
static bool
kept_is(int64_t id, size_t length)
{
	return request_is(
	    id, ENVIRONMENT, sizeof(ENVIRONMENT), (int64_t)length);
}

static bool
no_request(int64_t id)
{
	struct buf environment;
	struct spool *body;
	enum rc rc;

	buf_init(&environment, 65536);
	rc = store_request(store, owner_of(id), id, &environment, &body);
	assert_null(body);
	assert_int_equal(environment.len, 0);
	buf_free(&environment);
	return rc == RC_NOTFOUND && count_of(REQUESTS) == 0 &&
	    count_of(PIECES) == 0;
}

/* --- the request -------------------------------------------------------- */

STORE_TEST(a_request_comes_back_byte_for_byte)
{
	static const size_t lengths[] = { 0, 1, 100, 16384, 65535, 65536,
		131071, 131072, 131073, 262144, 262145, 5 * 1024 * 1024 };
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		lease = reserve_kept(textf("%zu", lengths[i]), lengths[i]);
		if (!kept_is(lease.id, lengths[i]))
			fail_msg("%zu bytes", lengths[i]);
		settle(&lease, RECORD_UNKNOWN);
		if (!kept_is(lease.id, lengths[i]))
			fail_msg("%zu bytes, unknown", lengths[i]);
	}
}

STORE_TEST(the_next_attempt_keeps_its_own_request)
{
	struct store_lease lease = reserve_kept("k", LARGE);
	struct store_reservation r;

	settle(&lease, RECORD_FAILED_RETRYABLE);
	lease = reserve_kept("k", LARGE - 1);
	assert_int_equal(lease.attempt, 2);
	assert_true(kept_is(lease.id, LARGE - 1));
	settle(&lease, RECORD_FAILED_RETRYABLE);
	/* and none when its route has no reconciler any more */
	r = reservation("k");
	lease = reserve_as(&r);
	assert_int_equal(lease.attempt, 3);
	assert_true(no_request(lease.id));
}

static enum rc
resolve(const struct store_lease *lease, struct store_tries tries,
    enum record_state state, size_t body)
{
	struct store_outcome *s = outcome(state);

	snprintf(s->last_error, sizeof(s->last_error), "found out");
	if (body > 0)
		give_body(s, body);
	return resolve_with(lease->id, tries, s);
}

/* Whatever the verdict is. */
static void
resolves_nothing(const struct store_lease *lease, struct store_tries tries)
{
	static const enum record_state states[] = { RECORD_COMPLETED,
		RECORD_FAILED_RETRYABLE, RECORD_DEAD_LETTER };

	for (size_t i = 0; i < COUNT(states); i++)
		assert_int_equal(resolve(lease, tries, states[i], 0), RC_LOST);
}

/* Those of an operator that looked at the first attempt. */
static const struct store_tries anyhow = { 1, -1 };

/* Tries that are up to date, for a key that was tried so often. */
static struct store_tries
tried(int tries)
{
	struct store_tries t = { 1, tries };

	return t;
}

STORE_TEST(a_request_is_erased_with_the_outcome)
{
	static const char *const rows[] = { "completed", "released",
		"found out: completed", "found out: not executed",
		"dead letter, completed", "forgotten", "past its retention" };
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(rows); i++) {
		lease = reserve_kept(rows[i], LARGE);
		assert_true(kept_is(lease.id, LARGE));
		if (i < 2) {
			settle(&lease,
			    i == 0 ? RECORD_COMPLETED
				   : RECORD_FAILED_RETRYABLE);
			if (!no_request(lease.id))
				fail_msg("%s", rows[i]);
			continue;
		}
		settle(&lease, RECORD_UNKNOWN);
		assert_true(kept_is(lease.id, LARGE));
		if (i == 4)
			assert_ok(
			    resolve(&lease, tried(0), RECORD_DEAD_LETTER, 0));
		if (i == 4) /* an operator may want to see it */
			assert_true(kept_is(lease.id, LARGE));
		if (i == 2 || i == 4)
			assert_ok(resolve(&lease, anyhow, RECORD_COMPLETED, 0));
		if (i == 3)
			assert_ok(resolve(
			    &lease, tried(0), RECORD_FAILED_RETRYABLE, 0));
		if (i == 5)
			forget_key(lease.id);
		if (i == 6) {
			set_state(rows[i], RECORD_FAILED_RETRYABLE);
			set_value(rows[i], K_EXPIRES_AT, 1);
			assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
		}
		if (!no_request(lease.id))
			fail_msg("%s", rows[i]);
	}
}

/* --- which key is due, and when ------------------------------------------ */

static struct store_lease
become_unknown(const char *key)
{
	struct store_lease lease = reserve_kept(key, 10);

	settle(&lease, RECORD_UNKNOWN);
	return lease;
}

/* The key that is due, for it to be compared and thrown away. */
static const char *
due_key(struct store *s, struct store_tries *tries)
{
	static char key[64];
	struct record due;
	enum rc rc = store_due(s, 0, &due);

	if (rc == RC_NOTFOUND)
		return "";
	assert_ok(rc);
	snprintf(key, sizeof(key), "%s", due.key);
	if (tries != NULL)
		*tries =
		    (struct store_tries){ due.attempt, due.reconcile_attempts };
	record_free(&due);
	return key;
}

/* What is due after that caller's turn. */
static const char *
due_after(int64_t caller)
{
	static char text[64];
	struct record due;

	assert_ok(store_due(store, caller, &due));
	snprintf(text, sizeof(text), "%" PRId64 "/%s", due.caller, due.key);
	record_free(&due);
	return text;
}

STORE_TEST(callers_take_turns)
{
	static const int64_t callers[] = { 7, 7, 7, 9, 8, INT64_C(1) << 61 };
	struct store_reservation r;
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(callers); i++) {
		r = kept(textf("%zu", i), 0);
		r.caller = callers[i];
		r.reconcile_delay = HOUR;
		lease = reserve_as(&r);
		settle(&lease, RECORD_UNKNOWN);
	}
	make_due();
	assert_string_equal(due_after(0), "7/0");
	assert_string_equal(due_after(7), "8/4");
	assert_string_equal(due_after(8), "9/3");
	assert_string_equal(due_after(9), "2305843009213693952/5");
	assert_string_equal(due_after(callers[5]), "7/0");
	for (size_t i = 3; i < COUNT(callers); i++)
		set_value(textf("%zu", i), K_RECONCILE_AFTER,
		    INT64_C(9000000000000000));
	assert_string_equal(due_after(7), "7/0");
	assert_string_equal(due_after(9), "7/0");
}

STORE_TEST(of_two_stores_one_claims)
{
	struct store *other = open_store();
	struct store_tries here, there;
	struct store_lease lease;

	lease = become_unknown("k");
	make_due();
	assert_string_equal(due_key(store, &here), "k");
	assert_string_equal(due_key(other, &there), "k");
	assert_ok(store_claim(other, lease.id, &there, true, HOUR));
	assert_int_equal(there.tries, 1);
	assert_int_equal(
	    store_claim(store, lease.id, &here, true, HOUR), RC_LOST);
	assert_int_equal(here.tries, 0);
	/* it is not due again before its time */
	assert_string_equal(due_key(store, NULL), "");
	/* the attempt that was lost resolves nothing either */
	resolves_nothing(&lease, here);
	assert_int_equal(state_of("k"), RECORD_UNKNOWN);
	assert_ok(resolve(&lease, there, RECORD_COMPLETED, 0));
	store_close(other);
}

STORE_TEST(a_verdict_on_an_earlier_attempt_is_lost)
{
	struct store_lease lease = become_unknown("k"), second;
	struct store_tries first;

	make_due();
	assert_string_equal(due_key(store, &first), "k");
	assert_ok(store_claim(store, lease.id, &first, true, HOUR));
	/* an operator releases it, it runs again, and is unknown again */
	assert_ok(resolve(&lease, anyhow, RECORD_FAILED_RETRYABLE, 0));
	second = reserve_kept("k", 10);
	resolves_nothing(&lease, first); /* while it runs */
	settle(&second, RECORD_UNKNOWN);
	/* nor does an operator that looked before */
	assert_int_equal(
	    resolve(&lease, anyhow, RECORD_FAILED_RETRYABLE, 0), RC_LOST);
	make_due();
	set_value("k", K_RECONCILE_TRIES, 1);
	resolves_nothing(&lease, first);
	assert_int_equal(
	    store_claim(store, lease.id, &first, true, HOUR), RC_LOST);
	assert_int_equal(state_of("k"), RECORD_UNKNOWN);
	assert_string_equal(due_key(store, &first), "k");
	assert_int_equal(first.attempt, 2);
	assert_ok(resolve(&lease, first, RECORD_FAILED_RETRYABLE, 0));
}

/* --- verdicts ----------------------------------------------------------- */

STORE_TEST(a_resolved_key_is_as_if_it_had_settled_itself)
{
	static const size_t lengths[] = { 0, 100, 5000, 131072, 131073,
		300000 };
	struct store_lease lease, again;
	char key[16];

	for (size_t i = 0; i < COUNT(lengths); i++) {
		snprintf(key, sizeof(key), "%zu", lengths[i]);
		lease = become_unknown(key);
		assert_ok(
		    resolve(&lease, anyhow, RECORD_COMPLETED, lengths[i]));
		assert_int_equal(decision_for(key), DECIDE_REPLAY);
		assert_true(answer_is(lease.id, lengths[i]));
		/* the one that it was reserved with, from now on */
		assert_retention(key, HOUR);
	}
	lease = become_unknown("released");
	assert_ok(resolve(&lease, anyhow, RECORD_FAILED_RETRYABLE, 0));
	again = reserve("released");
	assert_int_equal(again.attempt, 2);
	assert_string_equal(again.downstream, lease.downstream);
}

/* --- operators ---------------------------------------------------------- */

/* One transaction deletes what may be deleted, and says which. */
STORE_TEST(of_some_keys_those_that_may_be_are_forgotten)
{
	struct store_lease unknown = reserve("unknown"), runs, other;
	struct store_chosen keys[STORE_CHOSEN_MAX + 1] = { { .id = 0 } };

	settle(&unknown, RECORD_UNKNOWN);
	runs = reserve("runs");
	other = put("other", RECORD_UNKNOWN);
	keys[0].id = runs.id;
	keys[1].id = unknown.id;
	keys[1].from = RECORD_UNKNOWN;
	keys[2].id = other.id;
	keys[2].from = RECORD_COMPLETED;
	keys[3].id = other.id + 1000;
	assert_ok(store_forget_some(store, keys, 4));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(keys[i].done, i == 1);
	assert_int_equal(state_of("unknown"), RECORD_NONE);
	assert_int_equal(state_of("runs"), RECORD_IN_PROGRESS);
	assert_int_equal(state_of("other"), RECORD_UNKNOWN);
	assert_int_equal(
	    store_forget_some(store, keys, STORE_CHOSEN_MAX + 1), RC_INVALID);
}
