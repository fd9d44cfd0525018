/*
 * store: large answers, which are stored in pieces.
 */
#include "config.h"

#include <sys/stat.h>

#include <pthread.h>

#include "faulty_vfs.h"
#include "store_fixture.h"

/* A body of so many pieces that it takes a while, and one of a few. */
#define LONG (32 * 1024 * 1024)
#define SOME 1000000

static int
setup_synced(void **state)
{
	struct store_options o;
	char err[256];

	if (setup_dir(state) != 0)
		return -1;
	o = options();
	o.durability = CONF_DURABILITY_FULL;
	return store_open(&store, &o, err, sizeof(err)) == RC_OK ? 0 : -1;
}

static int
teardown_heal(void **state)
{
	faulty_heal();
	return teardown(state);
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
	assert_int_equal(pthread_create(&me->thread, NULL, settle_it, me), 0);
}

static int64_t
pieces(void)
{
	return raw_number("SELECT count(*) FROM once_piece");
}

static bool
bodies_are_well(void)
{
	struct store_finding f[24];
	size_t i, n;

	assert_int_equal(store_doctor(store, NULL, f, COUNT(f), &n), RC_OK);
	for (i = 0; i < n; i++)
		if (strcmp(f[i].name, "bodies") == 0)
			return f[i].ok;
	fail_msg("doctor says nothing of bodies");
	return false;
}

/* Pieces that an attempt of that key has left. */
static void
leave_pieces(const char *key)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	    "WHERE i < 40) INSERT INTO once_piece(id, body) "
	    "SELECT 65536 * id + i, zeroblob(100) FROM once_key, n "
	    "WHERE key = '%s'",
	    key);
	raw(sql);
	assert_true(pieces() >= 40);
}

static void
others_commit_while_a_large_answer_is_being_stored(void **state)
{
	struct settler large;
	struct store_lease small;

	(void)state;
	begin(&large, "large", LONG);
	while (pieces() == 0)
		assert_int_equal(state_of("large"), RECORD_IN_PROGRESS);
	small = reserve("small");
	settle(&small, RECORD_COMPLETED);
	/* both are durable, and it is not */
	assert_int_equal(state_of("large"), RECORD_IN_PROGRESS);
	assert_true(bodies_are_well());
	pthread_join(large.thread, NULL);
	assert_int_equal(large.rc, RC_OK);
	assert_true(answer_is(large.lease.id, LONG));
	assert_true(bodies_are_well());
}

static void
large_answers_at_once_do_not_mix(void **state)
{
	struct settler s[6];
	char key[16];
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(s); i++) {
		snprintf(key, sizeof(key), "%zu", i);
		begin(&s[i], key, SOME + i);
	}
	for (i = 0; i < COUNT(s); i++) {
		pthread_join(s[i].thread, NULL);
		assert_int_equal(s[i].rc, RC_OK);
		assert_true(answer_is(s[i].lease.id, SOME + i));
	}
}

static void
a_later_attempt_replaces_what_an_earlier_one_left(void **state)
{
	static const size_t lengths[] = { 5000, SOME };
	struct store_outcome *s;
	struct store_lease lease;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(lengths); i++) {
		lease = reserve(i == 0 ? "a" : "b");
		leave_pieces(i == 0 ? "a" : "b");
		assert_true(bodies_are_well());
		s = outcome(RECORD_COMPLETED);
		give_body(s, lengths[i]);
		assert_int_equal(finish(&lease, s), RC_OK);
		assert_true(answer_is(lease.id, lengths[i]));
		assert_true(bodies_are_well());
	}
}

static void
what_a_lost_attempt_has_left_is_swept(void **state)
{
	(void)state;
	reserve("k");
	leave_pieces("k");
	raw("UPDATE once_key SET owner = 4242");
	assert_int_equal(sweep(store), 1);
	assert_int_equal(state_of("k"), RECORD_UNKNOWN);
	assert_int_equal(pieces(), 0);
}

static void
what_an_attempt_has_left_that_answered_itself_is_swept(void **state)
{
	struct store_lease lease = reserve("k");
	char sql[200];

	(void)state;
	leave_pieces("k");
	snprintf(sql, sizeof(sql),
	    "INSERT INTO once_response(token, status, body) "
	    "VALUES ('%s-%lld', 201, zeroblob(5000))",
	    lease.token, (long long)lease.id);
	raw(sql);
	assert_true(bodies_are_well());
	raw("UPDATE once_key SET owner = 4242");
	assert_int_equal(sweep(store), 1);
	assert_int_equal(state_of("k"), RECORD_COMPLETED);
	assert_int_equal(pieces(), 0);
	assert_true(bodies_are_well());
}

/* Its token is not the key's any more. */
static void
an_attempt_that_lost_its_lease_stores_no_piece(void **state)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *s = outcome(RECORD_COMPLETED);

	(void)state;
	give_body(s, SOME);
	raw("UPDATE once_key SET token = '0123456789abcdef0123456789abcdef'");
	assert_int_equal(finish(&lease, s), RC_LOST);
	assert_int_equal(pieces(), 0);
	assert_int_equal(state_of("k"), RECORD_IN_PROGRESS);
}

static void
doctor_finds_pieces_that_no_attempt_needs(void **state)
{
	struct store_lease lease = reserve("k");

	(void)state;
	leave_pieces("k");
	assert_true(bodies_are_well());
	settle(&lease, RECORD_UNKNOWN);
	assert_false(bodies_are_well());
}

/* A reader keeps the log from being cut, so what is in it stays there. */
static void
an_answer_whose_last_pieces_find_no_room_is_not_kept(void **state)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *s = outcome(RECORD_COMPLETED);
	sqlite3 *reader = raw_open(file);
	char wal[128];
	struct stat st;

	(void)state;
	give_body(s, SOME);
	raw_run(reader, "BEGIN; SELECT count(*) FROM once_key");
	snprintf(wal, sizeof(wal), "%s-wal", file);
	assert_int_equal(stat(wal, &st), 0);
	/* three pieces, and half a one */
	atomic_store(&faulty_size, st.st_size + 480000);
	assert_int_equal(finish(&lease, s), RC_OK);
	assert_int_equal(pieces(), 0);
	assert_int_equal(decision_for("k"), DECIDE_NOT_KEPT);
	assert_true(bodies_are_well());
	faulty_heal();
	sqlite3_close(reader);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_DISK(f) \
	cmocka_unit_test_setup_teardown(f, setup_synced, teardown_heal)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_commit_while_a_large_answer_is_being_stored),
		TEST(large_answers_at_once_do_not_mix),
		TEST(a_later_attempt_replaces_what_an_earlier_one_left),
		TEST(what_a_lost_attempt_has_left_is_swept),
		TEST(what_an_attempt_has_left_that_answered_itself_is_swept),
		TEST(an_attempt_that_lost_its_lease_stores_no_piece),
		TEST(doctor_finds_pieces_that_no_attempt_needs),
		TEST_DISK(an_answer_whose_last_pieces_find_no_room_is_not_kept),
	};

	if (faulty_register() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
