/*
 * store: an attempt's own answer, from its commit until it is confirmed; and
 * that an attempt which lost its lease, however it did, can say nothing more.
 */
#include "config.h"

#define PATIENCE 2000

#include "../power/vfs.h"
#include "store_fixture.h"
#include "store_lost.h"
#include "say.h"

static sqlite3 *handler;

static int
open_for(enum conf_durability durability)
{
	struct store_options o = options();

	o.durability = durability;
	store = open_with(o);
	handler = handler_open();
	return add_topics(1);
}

static int
setup_handler(void **state)
{
	return setup_dir(state) != 0 ? -1 : open_for(CONF_DURABILITY_NORMAL);
}

static int
setup_synced_handler(void **state)
{
	return setup_dir(state) != 0 ? -1 : open_for(CONF_DURABILITY_FULL);
}

static int
teardown_handler(void **state)
{
	sqlite3_close(handler);
	handler = NULL;
	return teardown(state);
}

#define OWN RESPONSE "201, 'A: b' || char(10), 'mine')"

/* Whether that is the key's answer now. */
static bool
own_answer_is_given(int64_t id)
{
	struct spool *body;
	struct response r;
	bool is;

	response_init(&r);
	is = store_answer(store, owner_of(id), id, &r, &body) == RC_OK &&
	    r.status == 201 && r.body_len == 4 &&
	    memcmp(r.body, "mine", 4) == 0 &&
	    strcmp(r.fields.data, "A: b\r\n") == 0 && r.as_given;
	response_free(&r);
	spool_free(body);
	return is;
}

static int64_t
leases(void)
{
	return count_with(K_TOKEN) + count_with(K_OWNER) +
	    count_with(K_LOCKED_UNTIL) + count_with(K_ATTEMPT_LOCK) +
	    count_with(K_LOCK_FILE);
}

#define CASE(name) TEST_WITH(name, setup_handler, teardown_handler)

/* --- it wins ------------------------------------------------------------- */

/* It answered while its end waited for the lock that it held. */
CASE(an_answer_in_the_last_moment_counts)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *s = outcome(RECORD_UNKNOWN);
	struct store_finished done;
	int64_t until = clock_mono() + 20000;

	raw_run(handler, "BEGIN IMMEDIATE");
	assert_null(try_say(handler, token_of(&lease), OWN));
	assert_int_equal(
	    store_finish(store, &lease, HOUR, &s, &done), RC_PENDING);
	raw_run(handler, "COMMIT");
	while (leases() != 0) {
		assert_true(clock_mono() < until);
		rest(10);
	}
	assert_int_equal(state_of("k"), RECORD_COMPLETED);
	assert_true(own_answer_is_given(lease.id));
}

/* --- before it is sealed ------------------------------------------------- */

CASE(unsealed_a_key_is_answered_from_and_does_not_age)
{
	struct store_reservation r = reservation("k");
	struct store_lease lease;
	const struct record *record;

	r.lease = r.retention = 0;
	lease = reserve_as(&r);
	say(handler, &lease, OWN);
	record = record_of("k");
	assert_true(record->unconfirmed);
	assert_string_equal(record->token, lease.token);
	assert_true(record->expires_at <= store_now(store));
	assert_false(decide_is_past(record, store_now(store)));
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	assert_true(own_answer_is_given(lease.id));
	assert_int_equal(expire(STORE_EXPIRE_MAX), 0);
	assert_int_equal(store_forget(store, lease.id, RECORD_NONE), RC_LOST);
	assert_int_equal(recover_in(store, 1), 0); /* we live */
	doctor_finds_nothing();

	settle(&lease, RECORD_UNKNOWN);
	assert_int_equal(leases(), 0);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_int_equal(state_of("k"), RECORD_NONE);
}

CASE(fields_that_are_not_its_to_send_are_left_out)
{
	struct store_lease lease = reserve("k");
	struct spool *body;
	struct response r;

	say(handler, &lease,
	    RESPONSE "201, 'A:b' || char(13, 10) || 'Keep-Alive: 1' || "
		     "char(10) || 'Set-Cookie: \u00e4  ' || char(10) || "
		     "'TE: x' || char(10) || 'A:' || char(10) || 'a:' || "
		     "char(9) || ' c', NULL)");
	/* whatever came into the file by another way */
	append_headers("Idempotent-Replayed: x\nConnection: b\nB: c");
	response_init(&r);
	assert_ok(store_answer(store, owner_of(lease.id), lease.id, &r, &body));
	assert_string_equal(
	    r.fields.data, "A: b\r\nSet-Cookie: \u00e4\r\nA: \r\na: c\r\n");
	response_free(&r);
}

/* As large as the triggers let it be, it can be read. */
CASE(the_longest_head_comes_back)
{
	static const char *const heads[] = {
		"'A:' || replace(hex(zeroblob(65531)), '00', 'a')",
		"replace(hex(zeroblob(256)), '00', 'A:' || "
		"replace(hex(zeroblob(249)), '00', 'a') || char(10))",
	};
	struct store_lease lease;
	struct spool *body;
	struct response r;
	char sql[300];
	size_t pos, n;
	struct field f;

	for (size_t i = 0; i < COUNT(heads); i++) {
		lease = reserve(heads[i]);
		snprintf(sql, sizeof(sql), RESPONSE "200, %s, NULL)", heads[i]);
		say(handler, &lease, sql);
		response_init(&r);
		assert_ok(store_answer(
		    store, owner_of(lease.id), lease.id, &r, &body));
		for (pos = n = 0; response_next(&r.fields, &pos, &f); n++)
			;
		assert_int_equal(n, i == 0 ? 1 : 256);
		response_free(&r);
	}
}

/* --- a process that is gone ---------------------------------------------- */

/* A process that takes a lease for that key, says OWN if it answers, and is
 * killed. */
static struct lost
lose(const char *key, enum conf_on_crash on_crash, bool answers, bool heir)
{
	struct store_reservation r = reservation(key);
	struct lost lost;

	if (lost_fork(&lost, heir)) {
		handler = handler_open();
		if (on_crash == CONF_CRASH_RESUME)
			r = lost_resumable(&lost, key);
		lost.lease = reserve_as(&r);
		if (answers)
			say(handler, &lost.lease, OWN);
		lost_stay(&lost);
	}
	kill_and_wait(lost.owner);
	return lost;
}

#define FORKING(name) TEST_WITH(name, setup_dir, teardown_handler)

FORKING(of_a_dead_process_an_own_answer_is_sealed)
{
	static const enum conf_on_crash fates[] = { CONF_CRASH_UNKNOWN,
		CONF_CRASH_RESUME, CONF_CRASH_RESUME };
	struct lost lost;

	for (size_t i = 0; i < COUNT(fates); i++) {
		/* what it left behind does not hold that up */
		lost = lose("k", fates[i], true, i == 2);
		store = open_store();
		assert_int_equal(leases(), i == 0 ? 3 : 5);
		assert_int_equal(recover_in(store, 1), 1);
		assert_int_equal(changed.id, lost.lease.id);
		assert_string_equal(changed.key, "k");
		assert_int_equal(changed.from, RECORD_COMPLETED);
		assert_int_equal(changed.to, RECORD_COMPLETED);
		assert_int_equal(leases(), 0);
		assert_retention("k", HOUR);
		assert_int_equal(sweep(store), 0);
		assert_int_equal(decision_for("k"), DECIDE_REPLAY);
		assert_true(own_answer_is_given(lost.lease.id));
		assert_int_equal(
		    finish(&lost.lease, outcome(RECORD_COMPLETED)), RC_LOST);
		if (i == 2)
			close(lost.hold);
		store_close(store);
		store = NULL;
		empty_dir();
	}
}

/* --- a lease that is no more --------------------------------------------- */

static const struct store_tries operator_ = { 1, -1 };

/* How the attempt of key "k" ends: in that state, and by what follows. */
static const struct end {
	const char *name;
	enum record_state state, resolved; /* RECORD_NONE: it is not */
	bool answers, expires, forgotten, again, next_answers;
} ends[] = {
	{ "completed", .state = RECORD_COMPLETED },
	{ "released", .state = RECORD_FAILED_RETRYABLE },
	{ "unknown", .state = RECORD_UNKNOWN },
	{ "sealed", .state = RECORD_UNKNOWN, .answers = true },
	{ "replaced", .state = RECORD_FAILED_RETRYABLE, .again = true },
	{ "answered by the next", .state = RECORD_FAILED_RETRYABLE,
	    .again = true, .next_answers = true },
	{ "resolved", .state = RECORD_UNKNOWN, .resolved = RECORD_COMPLETED },
	{ "resolved and replaced", .state = RECORD_UNKNOWN,
	    .resolved = RECORD_FAILED_RETRYABLE, .again = true },
	{ "forgotten", .state = RECORD_UNKNOWN, .forgotten = true },
	{ "made anew", .state = RECORD_UNKNOWN, .forgotten = true,
	    .again = true },
	{ "past its retention", .state = RECORD_COMPLETED, .expires = true },
};

static void
end(const struct store_lease *lease, const struct end *e)
{
	struct store_lease next;

	if (e->answers)
		say(handler, lease, OWN);
	settle_for(lease, e->state, e->expires ? 0 : HOUR);
	if (e->resolved != RECORD_NONE)
		assert_ok(
		    resolve_with(lease->id, operator_, outcome(e->resolved)));
	if (e->expires)
		assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	if (e->forgotten)
		forget_key(lease->id);
	if (e->again) {
		next = reserve("k");
		/* A number is not used again. */
		assert_int_equal(next.id, lease->id + e->forgotten);
		if (e->next_answers)
			say(handler, &next, OWN);
	}
}

static const char *const words[] = { CHECKPOINT "'late')",
	OUTBOX "'mail', 'late')", RESPONSE "202, NULL, 'late')" };

CASE(superseded_an_attempt_can_say_nothing_more)
{
	struct store_lease lease;
	int64_t before;

	for (size_t i = 0; i < COUNT(ends); i++) {
		delete_all(KEYS);
		lease = reserve("k");
		say(handler, &lease, CHECKPOINT "'in time')");
		print_message("%s\n", ends[i].name);
		end(&lease, &ends[i]);
		before = content();
		for (size_t j = 0; j < COUNT(words); j++)
			refuses(
			    handler, token_of(&lease), words[j], "lease lost");
		assert_int_equal(content(), before);
	}
}

/* --- durable before it is told ------------------------------------------- */

/* What a power failure or a disk that fails does to an own answer is in
 * tests/power/said.c; here are the syncs that are not needed, or that another
 * process makes necessary. */

/* Syncs of the database itself so far. */
static unsigned
base_syncs(void)
{
	return vfs_calls(VFS_SYNC) - vfs_log_syncs();
}

static void
reopen_synced(void)
{
	struct store_options o = options();

	o.durability = CONF_DURABILITY_FULL;
	reopen_with(o);
}

#define SYNCED(name) TEST_WITH(name, setup_synced_handler, teardown_handler)

/* It may have died after it had sealed an answer, before that was synced. */
SYNCED(who_opens_it_syncs_what_a_predecessor_left)
{
	unsigned base;

	store_close(store);
	store = NULL;
	base = base_syncs();
	reopen_synced();
	assert_true(base_syncs() > base);
}

SYNCED(only_an_own_answer_costs_a_sync_of_the_database)
{
	struct store_lease lease = reserve("k");
	unsigned base = base_syncs();

	settle(&lease, RECORD_COMPLETED);
	assert_int_equal(base_syncs(), base);
	lease = reserve("own");
	say(handler, &lease, OWN);
	settle(&lease, RECORD_UNKNOWN);
	assert_true(base_syncs() > base);
}

CASE(where_commits_are_not_synced_making_durable_syncs_nothing)
{
	const struct record unconfirmed = { .unconfirmed = true };
	struct store_lease lease = reserve("k");
	unsigned syncs;

	raw_run(handler, "PRAGMA synchronous = OFF");
	say(handler, &lease, OWN);
	syncs = vfs_calls(VFS_SYNC);
	assert_ok(store_make_durable(store, &unconfirmed));
	settle(&lease, RECORD_UNKNOWN);
	assert_true(own_answer_is_given(lease.id));
	assert_int_equal(vfs_calls(VFS_SYNC), syncs);
}

GROUP(begin_group, NULL)
