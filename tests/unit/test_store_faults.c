/*
 * store: what goes wrong around it.  Killed processes, locks of others, files
 * that are not ours, rows that make no sense.  Disks that are full or fail are
 * in tests/power/faults.c and tests/system/test_store.py.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#define PATIENCE 1000

#include "clock.h"
#include "store_fixture.h"

/* Until it is in that state, or ten seconds. */
static bool
becomes(const char *key, enum record_state wanted)
{
	int64_t until = clock_mono() + 10000;
	uint64_t generation = 0;

	while (state_of(key) != wanted)
		if (!store_wait(store, &generation, until))
			return false;
	return true;
}

/* Until the committer has the lock again, or ten seconds.  Before that it
 * refuses reservations almost at once. */
static bool
becomes_healthy(void)
{
	const int64_t until = clock_mono() + 10000;
	uint64_t generation = 0;
	char why[200];

	while (!store_health(store, why, sizeof(why))) {
		if (clock_mono() >= until)
			return false;
		store_wait(store, &generation, clock_mono() + 10);
	}
	return true;
}

/* That nothing is settled for a while: what is queued stays queued. */
static void
nothing_settles(void)
{
	uint64_t before = 0, generation;

	store_wait(store, &before, clock_mono() + 1000);
	generation = before;
	store_wait(store, &generation, clock_mono() + 100);
	assert_int_equal(generation, before);
}

/* --- other processes ---------------------------------------------------- */

/*
 * A child with a store of its own that takes some leases, says so, and stays.
 * No store is open here while it is forked: SQLite does not survive that.
 */
static pid_t
child_with_leases(char name, int n, struct store_lease *lease)
{
	char key[] = { name, '0', '\0' };
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		be_child();
		store = open_store();
		for (; n > 0; n--, key[1]++)
			*lease = reserve(key);
		if (write(fd[1], lease, sizeof(*lease)) != sizeof(*lease))
			_exit(1);
		for (;;)
			pause();
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], lease, sizeof(*lease)), sizeof(*lease));
	close(fd[0]);
	return pid;
}

DIR_TEST(a_sweep_is_bounded_and_spares_the_living)
{
	struct store_lease lease;
	pid_t dead1, dead2, alive;

	dead1 = child_with_leases('a', 3, &lease);
	alive = child_with_leases('b', 2, &lease);
	dead2 = child_with_leases('c', 3, &lease);
	kill_and_wait(dead1);
	kill_and_wait(dead2);
	store = open_store();
	reserve("own");
	assert_int_equal(recover_in(store, 4), 4);
	assert_int_equal(recover_in(store, 4), 2);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(raw_number("SELECT count(*) FROM once_key "
				    "WHERE state = 'unknown'"),
	    6);
	assert_int_equal(state_of("b0"), RECORD_IN_PROGRESS);
	assert_int_equal(state_of("b1"), RECORD_IN_PROGRESS);
	assert_int_equal(state_of("own"), RECORD_IN_PROGRESS);
	kill_and_wait(alive);
}

DIR_TEST(without_the_lock_file_no_owner_is_settled)
{
	struct store_change changes[4];
	struct store_lease lease;
	char lock[128];
	pid_t pid;
	int n;

	pid = child_with_leases('a', 1, &lease);
	store = open_store();
	snprintf(lock, sizeof(lock), "%s-lock", file);
	assert_int_equal(unlink(lock), 0);
	kill_and_wait(pid);
	assert_int_equal(store_recover(store, 4, changes, &n), RC_REPLACED);
	assert_int_equal(n, 0);
	assert_int_equal(raw_number("SELECT count(*) FROM once_key "
				    "WHERE state = 'in_progress'"),
	    1);
}

/* By another name of its folder the database is the same, and so is its lock
 * file. */
DIR_TEST(by_a_link_to_its_folder_the_database_is_the_database)
{
	struct store_lease lease;
	char link[128], own[sizeof(file)];
	pid_t pid;

	pid = child_with_leases('a', 1, &lease);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(".", link), 0);
	strcpy(own, file);
	snprintf(file, sizeof(file), "%s/link/db", dir);
	store = open_store();
	strcpy(file, own);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(state_of("a0"), RECORD_IN_PROGRESS);
	kill_and_wait(pid);
	assert_int_equal(sweep(store), 1);
}

/* --- another process holds the write lock -------------------------------- */

STORE_TEST(a_reservation_gives_up_in_time)
{
	struct store_reservation r = reservation("k");
	sqlite3 *other = raw_open(file);
	struct store_lease lease;
	struct record found;
	enum decision d;
	int64_t begin;

	reserve("before");
	raw_run(other, "BEGIN IMMEDIATE");
	begin = clock_mono();
	/* It ends while the other has the lock: main()'s alarm, if not. */
	assert_int_equal(store_reserve(store, &r, &lease, &d, &found), RC_BUSY);
	assert_true(clock_mono() - begin >= PATIENCE);
	/* reading goes on */
	assert_int_equal(state_of("k"), RECORD_NONE);
	assert_int_equal(state_of("before"), RECORD_IN_PROGRESS);
	raw_run(other, "ROLLBACK");
	assert_true(becomes_healthy());
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
		nothing_settles();
		assert_int_equal(state_of(keys[i]), RECORD_IN_PROGRESS);
		raw_run(other, "ROLLBACK");
		assert_true(becomes(keys[i], RECORD_COMPLETED));
		assert_true(answer_is(lease.id, lengths[i]));
	}
	assert_int_equal(raw_number("SELECT count(*) FROM once_stage"), 0);
	sqlite3_close(other);
}

STORE_TEST(a_settlement_is_tried_once_more_at_the_end)
{
	struct store_lease a = reserve("a"), b = reserve("b");
	sqlite3 *other = raw_open(file);

	raw_run(other, "BEGIN IMMEDIATE");
	assert_int_equal(finish(&a, outcome(RECORD_COMPLETED)), RC_PENDING);
	raw_run(other, "ROLLBACK");
	store_close(store);
	store = open_store();
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
	char name[128];

	snprintf(name, sizeof(name), "%s-wal", file);
	return stat(name, &st) == 0 ? (long)st.st_size : 0;
}

struct neighbour {
	pthread_t thread;
	const char *key; /* to reserve, or */
	const struct store_lease *lease;
	struct store_outcome *outcome;
	enum rc rc;
};

/* Without a reader that does not end, the log is reset again and again. */
STORE_TEST(the_log_does_not_grow)
{
	struct store_lease lease;
	char key[16];
	int i;

	for (i = 0; i < 400; i++) {
		snprintf(key, sizeof(key), "%d", i);
		lease = put_answer(key, 50000);
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
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
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
	char name[128];

	snprintf(name, sizeof(name), "%s/none", dir);
	assert_int_equal(open_fails(name, false), RC_NOTFOUND);
	assert_int_equal(access(name, F_OK), -1);
	snprintf(name, sizeof(name), "%s/none/db", dir);
	assert_int_equal(open_fails(name, true), RC_IO);
	assert_int_equal(open_fails(dir, true), RC_IO);
	shell(": > $f");
	assert_int_equal(open_fails(file, false), RC_CORRUPT);
	/* but one that is empty can be made ours */
	store = open_store();
	assert_int_equal(decision_for("k"), DECIDE_RUN);
}

DIR_TEST(files_have_the_mode_asked_for)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
	static const mode_t modes[] = { 0600, 0660 }, masks[] = { 0, 077 };
	struct store_options o = options();
	char err[256], name[128];
	struct stat st;
	size_t i, j;
	mode_t old;

	for (i = 0; i < COUNT(modes); i++) {
		o.mode = modes[i];
		old = umask(masks[i]);
		assert_int_equal(
		    store_open(&store, &o, err, sizeof(err)), RC_OK);
		umask(old);
		for (j = 0; j < COUNT(suffixes); j++) {
			snprintf(name, sizeof(name), "%s%s", file, suffixes[j]);
			assert_int_equal(stat(name, &st), 0);
			/* what can open the lock file can lock it */
			assert_int_equal(
			    st.st_mode & 07777, j == 3 ? 0600 : modes[i]);
		}
		store_close(store);
		store = NULL;
		empty_dir();
	}
}

/* --- rows that make no sense -------------------------------------------- */

static enum rc
found_as(const char *key)
{
	struct store_reservation r = reservation(key);
	struct record record;
	enum rc rc;

	rc = store_find(store, &r.identity, &record);
	if (rc == RC_OK)
		record_free(&record);
	return rc;
}

STORE_TEST(a_broken_row_is_an_error_and_never_runs)
{
	static const struct {
		const char *name, *set;
	} rows[] = {
		{ "a short fingerprint", "fingerprint = x'00'" },
		{ "a long fingerprint", "fingerprint = zeroblob(33)" },
		{ "a downstream key that is none", "downstream = x'00'" },
		{ "a long downstream key", "downstream = zeroblob(17)" },
		{ "completed without a status", "status = NULL" },
		{ "completed with an odd status", "status = 42" },
		{ "no attempt", "attempt = 0" },
		{ "an unknown state", "state = 'odd'" },
		{ "a token outside of a lease",
		    "state = 'failed_retryable', kept = 0, "
		    "token = '0123456789abcdef0123456789abcdef'" },
		{ "half a token of an answer that is not sealed",
		    "token = '0123456789abcdef', owner = 1" },
		{ "a resource that is none", "resource = 'x'" },
		{ "waiting for a worker, and completed",
		    "accepted = 1, queued_at = 7" },
		{ "a lease without a token", "state = 'in_progress'" },
		{ "an end before time began", "expires_at = -1" },
		{ "a recovery point without end",
		    "recovery_point = hex(zeroblob(200))" },
	};
	struct store_lease lease;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		lease = put(rows[i].name, RECORD_COMPLETED);
		rawf("PRAGMA ignore_check_constraints = ON; "
		     "UPDATE once_key SET %s WHERE id = %lld",
		    rows[i].set, (long long)lease.id);
		if (i < COUNT(rows) - 1 && found_as(rows[i].name) != RC_CORRUPT)
			fail_msg("%s: found", rows[i].name);
		if (reserve_fails(rows[i].name) != RC_CORRUPT)
			fail_msg("%s: reserved", rows[i].name);
	}
	/* without its fingerprint spec a key is not free either */
	lease = reserve("r");
	raw("UPDATE once_key SET fingerprint_spec = 99 WHERE key = 'r'");
	assert_int_equal(reserve_fails("r"), RC_CORRUPT);
	/* the others are not touched by that */
	assert_int_equal(decision_for("sound"), DECIDE_RUN);
}

STORE_TEST(a_broken_answer_is_an_error)
{
	static const struct {
		const char *name, *sql;
		enum rc rc;
	} rows[] = {
		{ "of a later encoding",
		    "UPDATE once_key SET response_version = 3", RC_VERSION },
		{ "lines that are no fields",
		    "UPDATE once_key SET response_version = 2, "
		    "headers = CAST('a: b\nc' AS BLOB)",
		    RC_CORRUPT },
		{ "of no kind", "UPDATE once_key SET kind = 9", RC_CORRUPT },
		{ "an interim status", "UPDATE once_key SET status = 100",
		    RC_CORRUPT },
		{ "a long reason",
		    "UPDATE once_key SET reason = hex(zeroblob(100))",
		    RC_CORRUPT },
		{ "a body of another length",
		    "UPDATE once_key SET body_length = 4999", RC_CORRUPT },
		{ "a negative length", "UPDATE once_key SET body_length = -1",
		    RC_CORRUPT },
		{ "another length in the row",
		    "UPDATE once_key SET body = x'0000'", RC_CORRUPT },
		{ "no body", "DELETE FROM once_piece", RC_CORRUPT },
		{ "more of a body",
		    "INSERT INTO once_piece(id, body) SELECT id + 1, x'00' "
		    "FROM once_piece",
		    RC_CORRUPT },
	};
	struct store_lease lease;
	struct response r;
	struct spool *body;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		raw("DELETE FROM once_key; DELETE FROM once_piece");
		lease = put_answer("k", 5000);
		assert_true(answer_is(lease.id, 5000));
		raw(rows[i].sql);
		response_init(&r);
		if (store_answer(store, owner_of(lease.id), lease.id, &r,
			&body) != rows[i].rc)
			fail_msg("%s", rows[i].name);
		assert_null(body);
		assert_null(r.body);
		response_free(&r);
	}
}

static int
begin_group(void **state)
{
	(void)state;
	alarm(300); /* a test that waits for what never comes fails */
	return 0;
}

GROUP(begin_group, NULL)
