/*
 * store: what goes wrong around it.  Killed processes, locks of others, files
 * that are not ours.  Disks that are full or fail are in tests/power/faults.c
 * and tests/system/test_store.py.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <signal.h>

#define PATIENCE 1000

#include "clock.h"
#include "store_fixture.h"
#include "store_lost.h"

/* Until it is in that state, or ten seconds. */
static bool
becomes(const char *key, enum record_state wanted)
{
	int64_t until = clock_mono() + 10000;

	while (state_of(key) != wanted) {
		if (clock_mono() >= until)
			return false;
		rest(10);
	}
	return true;
}

/* Until the committer has the lock again.  Before that it refuses reservations
 * almost at once. */
static void
await_health(void)
{
	char why[200];

	AWAIT(store_health(store, why, sizeof(why)));
}

/* --- other processes ---------------------------------------------------- */

/* A process that has taken so many leases. */
static struct lost
start_owner(char name, int n)
{
	char key[] = { name, '0', '\0' };
	struct lost lost;

	if (lost_fork(&lost, false)) {
		for (; n > 0; n--, key[1]++)
			lost.lease = reserve(key);
		lost_stay(&lost);
	}
	return lost;
}

DIR_TEST(a_sweep_is_bounded_and_spares_the_living)
{
	const struct lost dead1 = start_owner('a', 3),
			  alive = start_owner('b', 2),
			  dead2 = start_owner('c', 3);

	kill_and_wait(dead1.owner);
	kill_and_wait(dead2.owner);
	store = open_store();
	reserve("own");
	assert_int_equal(recover_in(store, 4), 4);
	assert_int_equal(recover_in(store, 4), 2);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(count_keys(RECORD_UNKNOWN), 6);
	assert_int_equal(state_of("b0"), RECORD_IN_PROGRESS);
	assert_int_equal(state_of("b1"), RECORD_IN_PROGRESS);
	assert_int_equal(state_of("own"), RECORD_IN_PROGRESS);
	kill_and_wait(alive.owner);
}

DIR_TEST(without_the_lock_file_no_owner_is_settled)
{
	const struct lost lost = start_owner('a', 1);
	struct store_change changes[4];
	int n;

	store = open_store();
	assert_int_equal(unlink(textf("%s-lock", file)), 0);
	kill_and_wait(lost.owner);
	assert_int_equal(store_recover(store, 4, changes, &n), RC_REPLACED);
	assert_int_equal(n, 0);
	assert_int_equal(count_keys(RECORD_IN_PROGRESS), 1);
}

/* By another name of its folder the database is the same, and so is its lock
 * file. */
DIR_TEST(by_a_link_to_its_folder_the_database_is_the_database)
{
	const struct lost lost = start_owner('a', 1);
	char link[128], own[sizeof(file)];

	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(".", link), 0);
	strcpy(own, file);
	snprintf(file, sizeof(file), "%s/link/db", dir);
	store = open_store();
	strcpy(file, own);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(state_of("a0"), RECORD_IN_PROGRESS);
	kill_and_wait(lost.owner);
	assert_int_equal(sweep(store), 1);
}

/* --- another process holds the write lock -------------------------------- */

STORE_TEST(a_reservation_gives_up_in_time)
{
	sqlite3 *other = raw_open(file);
	int64_t begin;

	reserve("before");
	raw_run(other, "BEGIN IMMEDIATE");
	begin = clock_mono();
	/* It ends while the other has the lock: main()'s alarm, if not. */
	assert_int_equal(reserve_fails("k"), RC_BUSY);
	assert_true(clock_mono() - begin >= PATIENCE);
	/* reading goes on */
	assert_int_equal(state_of("k"), RECORD_NONE);
	assert_int_equal(state_of("before"), RECORD_IN_PROGRESS);
	raw_run(other, "ROLLBACK");
	await_health();
	/* what was given up does not happen after all */
	assert_int_equal(decision_for("later"), DECIDE_RUN);
	assert_int_equal(state_of("k"), RECORD_NONE);
	assert_int_equal(decision_for("k"), DECIDE_RUN);
	sqlite3_close(other);
}

STORE_TEST(a_settlement_does_not_give_up)
{
	static const size_t lengths[] = { 100000, 1000000 };
	const char *const keys[] = { "small", "large" };
	sqlite3 *other = raw_open(file);
	struct store_outcome *s;
	struct store_lease lease;
	int64_t begun;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		lease = reserve(keys[i]);
		s = outcome(RECORD_COMPLETED);
		give_body(s, lengths[i]);
		raw_run(other, "BEGIN IMMEDIATE");
		begun = clock_mono();
		assert_int_equal(finish(&lease, s), RC_PENDING);
		assert_in_range(
		    clock_mono() - begun, PATIENCE, 2 * PATIENCE - 100);
		rest(100);
		assert_int_equal(state_of(keys[i]), RECORD_IN_PROGRESS);
		raw_run(other, "ROLLBACK");
		assert_true(becomes(keys[i], RECORD_COMPLETED));
		assert_true(answer_is(lease.id, lengths[i]));
	}
	assert_int_equal(count_of(UNNAMED), 0);
	sqlite3_close(other);
}

STORE_TEST(a_settlement_is_tried_once_more_at_the_end)
{
	struct store_lease a = reserve("a"), b = reserve("b");
	sqlite3 *other = raw_open(file);

	raw_run(other, "BEGIN IMMEDIATE");
	assert_int_equal(finish(&a, outcome(RECORD_COMPLETED)), RC_PENDING);
	raw_run(other, "ROLLBACK");
	reopen();
	assert_int_equal(state_of("a"), RECORD_COMPLETED);

	raw_run(other, "BEGIN IMMEDIATE");
	assert_int_equal(finish(&b, outcome(RECORD_COMPLETED)), RC_PENDING);
	store_close(store); /* comes to an end all the same */
	raw_run(other, "ROLLBACK");
	sqlite3_close(other);
	store = open_store();
	assert_int_equal(state_of("b"), RECORD_IN_PROGRESS);
	assert_int_equal(sweep(store), 1);
	assert_int_equal(state_of("b"), RECORD_UNKNOWN);
}

static long
wal_size(void)
{
	struct stat st;

	return stat(textf("%s-wal", file), &st) == 0 ? (long)st.st_size : 0;
}

/* Without a reader that does not end, the log is reset again and again. */
STORE_TEST(the_log_does_not_grow)
{
	struct store_lease lease;

	for (int i = 0; i < 400; i++) {
		lease = put_answer(textf("%d", i), 50000);
		if (i % 10 == 0)
			assert_true(answer_is(lease.id, 50000));
	}
	assert_true(wal_size() < 9 * 1024 * 1024);
}

/* --- opening ------------------------------------------------------------ */

static enum rc
open_fails(const char *name, bool create)
{
	struct store_options o = options();
	char err[256] = "";
	struct store *s;
	enum rc rc;

	o.database = name;
	o.create = create;
	rc = store_open(&s, &o, err, sizeof(err));
	if (rc == RC_OK)
		fail_msg("%s was opened", name);
	assert_null(s);
	if (strstr(err, name) == NULL)
		fail_msg("not named: %s", err);
	return rc;
}

/* A command for the file "$f". */
static void
shell(const char *command)
{
	assert_int_equal(setenv("f", file, 1), 0);
	assert_int_equal(system(command), 0);
}

#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)

DIR_TEST(what_is_not_ours_is_refused_and_left_alone)
{
	static const struct {
		const char *name, *make;
		enum rc rc;
	} rows[] = {
		{ "not a database", "yes 'no database' | head -c 9000 > $f",
		    RC_CORRUPT },
		{ "a short text", "echo hello > $f", RC_CORRUPT },
		{ "another program's",
		    "sqlite3 $f 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'",
		    RC_CORRUPT },
		{ "another program's, by its id",
		    "sqlite3 $f 'PRAGMA application_id = 7'", RC_CORRUPT },
		{ "a newer release's",
		    "sqlite3 $f 'PRAGMA application_id = 1869505381; "
		    "PRAGMA user_version = 99; CREATE TABLE once_new(x)'",
		    RC_VERSION },
		{ "an older release's",
		    "sqlite3 $f 'PRAGMA application_id = 1869505381; "
		    "PRAGMA user_version = 1; CREATE TABLE once_old(x)'",
		    RC_VERSION },
		{ "ours without tables",
		    "sqlite3 $f 'PRAGMA application_id = 1869505381; "
		    "PRAGMA user_version = " TEXT_OF(QUERIES_VERSION) "'",
		    RC_CORRUPT },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		empty_dir();
		shell(rows[i].make);
		shell("cksum < $f > $f.before");
		if (open_fails(file, true) != rows[i].rc)
			fail_msg("%s", rows[i].name);
		shell("cksum < $f | cmp -s - $f.before");
	}
}

DIR_TEST(files_that_cannot_be_opened)
{
	const char *name = textf("%s/none", dir);

	assert_int_equal(open_fails(name, false), RC_NOTFOUND);
	assert_int_equal(access(name, F_OK), -1);
	assert_int_equal(open_fails(textf("%s/db", name), true), RC_IO);
	assert_int_equal(open_fails(dir, true), RC_IO);
	shell(": > $f");
	assert_int_equal(open_fails(file, false), RC_CORRUPT);
	/* but one that is empty can be made ours */
	store = open_store();
	assert_int_equal(decision_for("k"), DECIDE_RUN);
}

static int
begin_group(void **state)
{
	(void)state;
	alarm(300); /* a test that waits for what never comes fails */
	return 0;
}

GROUP(begin_group, NULL)
