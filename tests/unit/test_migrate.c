/*
 * migrate: databases of earlier versions.  version-N.dump is one that a
 * release with that version wrote, with a key in every state; answers have
 * bodies of byte_at().
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>

#include "migrate.h"
#include "store_fixture.h"

static int version; /* of the database that the test begins with */

/* What a dump does not tell of the file that it was made of. */
static void
restore(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[400], *sql;
	struct stat st;
	sqlite3 *db;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/unit/version-%d.dump",
	    srcdir != NULL ? srcdir : ".", version);
	if ((f = fopen(path, "r")) == NULL || fstat(fileno(f), &st) == -1)
		fail_msg("%s: %s", path, strerror(errno));
	sql = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(sql);
	assert_int_equal(fread(sql, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	db = raw_open(name);
	raw_run(db,
	    "PRAGMA page_size = 1024; PRAGMA auto_vacuum = INCREMENTAL;"
	    "PRAGMA journal_mode = WAL;");
	raw_run(db, sql);
	raw_run(db, "PRAGMA application_id = 1869505381;");
	snprintf(path, sizeof(path), "PRAGMA user_version = %d", version);
	raw_run(db, path);
	sqlite3_close(db);
	free(sql);
}

static int
setup_version_1(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	version = 1;
	restore(file);
	return 0;
}

static int
setup_version_2(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	version = 2;
	restore(file);
	return 0;
}

static int
setup_version_3(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	version = 3;
	restore(file);
	return 0;
}

static int64_t
columns(void)
{
	return raw_number("SELECT count(*) FROM pragma_table_info('once_key')");
}

/* The whole content of the database, or part of it, as one number. */
#define SUM                                                                    \
	"SELECT total(length(printf('%s %s %s %s %d %s %s %s %d %d %d %d %d "  \
	"%d %s %s %s %s', key, path, scope, state, attempt, hex(fingerprint)," \
	" downstream, recovery_point, retention, created_at, updated_at, "     \
	"expires_at, kept, status, last_error, reason, hex(headers), "         \
	"hex(body)))) + total(id * attempt + status) FROM once_key"

static void
an_earlier_version_is_upgraded_with_all_its_keys(void **state)
{
	static const struct {
		const char *key;
		enum record_state state;
		enum decision decision;
	} rows[] = {
		{ "empty", RECORD_COMPLETED, DECIDE_REPLAY },
		{ "small", RECORD_COMPLETED, DECIDE_REPLAY },
		{ "large", RECORD_COMPLETED, DECIDE_REPLAY },
		{ "again", RECORD_COMPLETED, DECIDE_REPLAY },
		{ "not-kept", RECORD_COMPLETED, DECIDE_NOT_KEPT },
		{ "unknown", RECORD_UNKNOWN, DECIDE_UNKNOWN },
		{ "dead_letter", RECORD_DEAD_LETTER, DECIDE_UNKNOWN },
		{ "expired", RECORD_EXPIRED, DECIDE_GONE },
		{ "pending", RECORD_PENDING, DECIDE_BUSY },
		{ "in_progress", RECORD_IN_PROGRESS, DECIDE_BUSY },
		{ "failed_retryable", RECORD_FAILED_RETRYABLE, DECIDE_RUN },
		{ "past", RECORD_COMPLETED, DECIDE_RUN },
	};
	struct store_finding f[16];
	int64_t sum;
	size_t i, n;

	(void)state;
	sum = raw_number(SUM);
	assert_int_equal(
	    raw_number("SELECT count(*) FROM once_key"), COUNT(rows));
	store = open_store();
	assert_int_equal(raw_number("PRAGMA user_version"), MIGRATE_VERSION);
	assert_int_equal(raw_number(SUM), sum);
	assert_int_equal(raw_number("SELECT kept_bytes FROM once_meta"),
	    raw_number("SELECT coalesce(sum(length(environment) + "
		       "length(body)), 0) FROM once_request"));
	for (i = 0; i < COUNT(rows); i++) {
		assert_int_equal(state_of(rows[i].key), rows[i].state);
		if (decision_for(rows[i].key) != rows[i].decision)
			fail_msg("%s", rows[i].key);
	}
	assert_true(answer_is(1, 0));
	assert_true(answer_is(2, 100));
	assert_true(answer_is(3, 2500));
	assert_true(answer_is(6, 100));
	/* numbers of rows go on */
	assert_int_equal(raw_number("SELECT max(id) FROM once_key"), 901);
	assert_int_equal(store_doctor(store, NULL, f, COUNT(f), &n), RC_OK);
	for (i = 0; i < n; i++)
		if (strcmp(f[i].name, "integrity") == 0 ||
		    strcmp(f[i].name, "schema") == 0 ||
		    strcmp(f[i].name, "bodies") == 0)
			assert_true(f[i].ok);
}

/* The keys of before live on by the rules of before. */
static void
what_it_held_is_swept_resolved_and_reaped(void **state)
{
	struct store_change changes[STORE_REAP_MAX];
	struct store_settlement *s;
	struct store_lease lease;
	struct store_due due;
	int n;

	(void)state;
	store = open_store();
	assert_int_equal(sweep(store), 1); /* its process is no more */
	assert_int_equal(state_of("in_progress"), RECORD_UNKNOWN);
	/* in version 1 their routes had no reconciler */
	if (version == 1)
		assert_int_equal(store_due(store, NULL, &due), RC_NOTFOUND);
	else {
		assert_int_equal(store_due(store, NULL, &due), RC_OK);
		assert_string_equal(due.key, "unknown");
		store_due_free(&due);
	}

	memset(&lease, 0, sizeof(lease));
	lease.id = raw_number("SELECT id FROM once_key WHERE key = 'unknown'");
	s = settlement(&lease, RECORD_COMPLETED);
	s->tries.attempt = 1;
	s->tries.tries = -1;
	give_body(s, 5000);
	assert_int_equal(commit(s), RC_OK);
	assert_true(answer_is(lease.id, 5000));
	assert_int_equal(decision_for("unknown"), DECIDE_REPLAY);
	lease.id =
	    raw_number("SELECT id FROM once_key WHERE key = 'dead_letter'");
	s = settlement(&lease, RECORD_FAILED_RETRYABLE);
	s->tries.attempt = 1;
	s->tries.tries = -1;
	assert_int_equal(commit(s), RC_OK);
	assert_int_equal(raw_number("SELECT count(*) FROM once_request"), 0);
	lease = reserve("dead_letter");
	assert_int_equal(lease.attempt, 2);

	assert_int_equal(store_reap(store, STORE_REAP_MAX, changes, &n), RC_OK);
	assert_int_equal(n, 1);
	assert_string_equal(changes[0].key, "past");
	assert_int_equal(changes[0].to, RECORD_NONE);
	store_changes_free(changes, n);
	/* the retention that they were made with is over some day */
	raw("UPDATE once_key SET expires_at = 1 "
	    "WHERE expires_at IS NOT NULL AND state <> 'pending'");
	assert_int_equal(store_reap(store, STORE_REAP_MAX, changes, &n), RC_OK);
	assert_int_equal(n, 8);
	store_changes_free(changes, n);
	assert_int_equal(raw_number("SELECT count(*) FROM once_body"), 0);
}

static void
upgraded_and_new_are_the_same(void **state)
{
	char attach[200];
	sqlite3_stmt *s;
	sqlite3 *db;

	(void)state;
	store_close(open_store());
	strcat(file, "2");
	store = open_store();
	file[strlen(file) - 1] = '\0';
	snprintf(attach, sizeof(attach), "ATTACH '%s2' AS new", file);
	db = raw_open(file);
	raw_run(db, attach);
	raw_run(db,
	    "CREATE TEMP TABLE differ AS "
	    "SELECT * FROM (SELECT type, name, tbl_name, sql FROM "
	    "main.sqlite_schema EXCEPT SELECT type, name, tbl_name, sql FROM "
	    "new.sqlite_schema) UNION ALL SELECT * FROM (SELECT type, name, "
	    "tbl_name, sql FROM new.sqlite_schema EXCEPT SELECT type, name, "
	    "tbl_name, sql FROM main.sqlite_schema)");
	assert_int_equal(
	    sqlite3_prepare_v2(
		db, "SELECT group_concat(sql) FROM differ", -1, &s, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	if (sqlite3_column_type(s, 0) != SQLITE_NULL)
		fail_msg("%s", (const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	sqlite3_close(db);
}

/* oncectl, say: it does not upgrade what a running oncewrap may use. */
static void
who_may_not_create_does_not_upgrade(void **state)
{
	struct store_options o = options();
	char err[256] = "";
	int64_t before = columns();

	(void)state;
	o.create = false;
	assert_int_equal(store_open(&store, &o, err, sizeof(err)), RC_VERSION);
	assert_null(store);
	assert_non_null(strstr(err, file));
	assert_non_null(strstr(err, "older release"));
	assert_int_equal(raw_number("PRAGMA user_version"), version);
	assert_int_equal(columns(), before);
}

static void
a_newer_version_is_refused_and_left_alone(void **state)
{
	struct store_options o = options();
	char err[256] = "", sql[64];
	int i;

	(void)state;
	snprintf(
	    sql, sizeof(sql), "PRAGMA user_version = %d", MIGRATE_VERSION + 1);
	raw(sql);
	for (i = 0; i < 2; i++) {
		o.create = i == 0;
		assert_int_equal(
		    store_open(&store, &o, err, sizeof(err)), RC_VERSION);
		assert_non_null(strstr(err, file));
		assert_non_null(strstr(err, "newer release"));
	}
	assert_int_equal(
	    raw_number("PRAGMA user_version"), MIGRATE_VERSION + 1);
}

/* A statement of the last version fails: nothing of the upgrade stays. */
static void
an_upgrade_that_fails_leaves_what_was(void **state)
{
	struct store_options o = options();
	int64_t sum, before = columns();
	char err[256] = "";

	(void)state;
	raw("CREATE TABLE once_key_scope(x)");
	sum = raw_number(SUM);
	assert_int_not_equal(store_open(&store, &o, err, sizeof(err)), RC_OK);
	assert_non_null(strstr(err, file));
	assert_int_equal(raw_number("PRAGMA user_version"), version);
	assert_int_equal(columns(), before);
	assert_int_equal(raw_number(SUM), sum);
	raw("DROP TABLE once_key_scope");
	store = open_store();
	assert_int_equal(decision_for("small"), DECIDE_REPLAY);
}

#ifdef FAULT_POINTS
/* The first tests: a process learns where it is to die when it first passes a
 * point, and these are forked by one that has passed none. */
static void
killed_at_each_statement_an_upgrade_begins_anew(void **state)
{
	char name[32];
	int status, n = 0;
	int64_t sum;
	pid_t pid;

	(void)state;
	sum = raw_number(SUM);
	do {
		snprintf(name, sizeof(name), "MIGRATE_STEP:%d", ++n);
		assert_int_not_equal(pid = fork(), -1);
		if (pid == 0) {
			be_child();
			setenv("ONCEWRAP_FAULT", name, 1);
			store_close(open_store());
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(raw_number("PRAGMA user_version"),
		    WIFSIGNALED(status) ? version : MIGRATE_VERSION);
		assert_int_equal(raw_number(SUM), sum);
	} while (WIFSIGNALED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(n > 5);
	assert_int_not_equal(pid = fork(), -1);
	if (pid == 0) {
		be_child();
		store = open_store();
		assert_int_equal(decision_for("small"), DECIDE_REPLAY);
		store_close(store);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
#endif

#define PROCESSES 4

static void
of_several_processes_that_upgrade_one_does(void **state)
{
	int i, round, go[2], done[2];
	pid_t pid[PROCESSES];
	char c[PROCESSES];

	(void)state;
	for (round = 0; round < 5; round++) {
		empty_dir();
		restore(file);
		assert_int_equal(pipe(go), 0);
		assert_int_equal(pipe(done), 0);
		for (i = 0; i < PROCESSES; i++) {
			assert_int_not_equal(pid[i] = fork(), -1);
			if (pid[i] != 0)
				continue;
			be_child();
			close(go[1]);
			(void)!read(go[0], c, 1);
			store = open_store();
			assert_int_equal(decision_for("small"), DECIDE_REPLAY);
			assert_int_equal(
			    decision_for("unknown"), DECIDE_UNKNOWN);
			(void)!write(done[1], "", 1);
			_exit(0);
		}
		close(go[0]);
		close(go[1]); /* now */
		close(done[1]);
		for (i = 0; i < PROCESSES; i++)
			assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
		assert_int_equal(read(done[0], c, sizeof(c)), PROCESSES);
		close(done[0]);
		assert_int_equal(
		    raw_number("PRAGMA user_version"), MIGRATE_VERSION);
	}
}

#define TEST_OF(f, n)                                                      \
	{                                                                  \
#f "_of_version_" #n, f, setup_version_##n, teardown, NULL \
	}
#define TEST(f) TEST_OF(f, 1), TEST_OF(f, 2), TEST_OF(f, 3)

int
main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef FAULT_POINTS
		TEST(killed_at_each_statement_an_upgrade_begins_anew),
#endif
		TEST(an_earlier_version_is_upgraded_with_all_its_keys),
		TEST(what_it_held_is_swept_resolved_and_reaped),
		TEST(upgraded_and_new_are_the_same),
		TEST(who_may_not_create_does_not_upgrade),
		TEST(a_newer_version_is_refused_and_left_alone),
		TEST(an_upgrade_that_fails_leaves_what_was),
		TEST(of_several_processes_that_upgrade_one_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
