/*
 * schema: a new database gets the schema, whole or not at all; one of another
 * version is refused.
 */
#include "config.h"

#include <errno.h>

#include "schema.h"
#include "store_fixture.h"

/* --- how SQLite was built, see Makefile.am ------------------------------- */

int __real_sqlite3_compileoption_used(const char *);
int __real_sqlite3_threadsafe(void);
int __wrap_sqlite3_compileoption_used(const char *);
int __wrap_sqlite3_threadsafe(void);

static const char *built_with;
static bool built_for_one_thread;

int
__wrap_sqlite3_compileoption_used(const char *option)
{
	return built_with != NULL && strcmp(option, built_with) == 0
	    ? 1
	    : __real_sqlite3_compileoption_used(option);
}

int
__wrap_sqlite3_threadsafe(void)
{
	return built_for_one_thread ? 0 : __real_sqlite3_threadsafe();
}

static int
setup_new(void **state)
{
	return setup_dir(state);
}

static int
setup_other(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	store_close(open_store());
	return 0;
}

#define NEW_TEST(name) TEST_WITH(name, setup_new, teardown)

#ifdef FAULT_POINTS
/* The first tests: a process learns where it is to die when it first passes a
 * point, and these are forked by one that has passed none. */
NEW_TEST(killed_at_each_statement_a_creation_begins_anew)
{
	char name[32];
	int status, n = 0;
	size_t statements;
	pid_t pid;

	(void)queries_schema(&statements);
	do {
		snprintf(name, sizeof(name), "SCHEMA_STEP:%d", ++n);
		assert_int_not_equal(pid = fork(), -1);
		if (pid == 0) {
			be_child();
			setenv("ONCEWRAP_FAULT", name, 1);
			store_close(open_store());
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(raw_number("PRAGMA user_version"),
		    WIFSIGNALED(status) ? 0 : SCHEMA_VERSION);
		if (WIFSIGNALED(status))
			assert_int_equal(
			    raw_number("SELECT count(*) FROM sqlite_schema"),
			    0);
	} while (WIFSIGNALED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(n, statements + 1);
	assert_int_not_equal(pid = fork(), -1);
	if (pid == 0) {
		be_child();
		store = open_store();
		assert_int_equal(decision_for("small"), DECIDE_RUN);
		store_close(store);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
#endif

NEW_TEST(a_new_database_has_this_version_and_no_keys)
{
	store = open_store();
	assert_int_equal(raw_number("PRAGMA user_version"), SCHEMA_VERSION);
	assert_int_equal(
	    raw_number("PRAGMA application_id"), SCHEMA_APPLICATION_ID);
	assert_int_equal(raw_number("SELECT count(*) FROM once_key"), 0);
	assert_int_equal(raw_number("SELECT length(secret) FROM once_meta"),
	    SCOPE_SECRET_LEN);
	doctor_finds_nothing();
}

/* Doctor has lists of all parts: none is missing there, and none too many. */
NEW_TEST(each_part_of_the_schema_is_known_to_doctor)
{
	const char *const *text;
	char name[64], sql[200];
	size_t n;

	store = open_store();
	text = queries_schema(&n);
	assert_int_equal(
	    raw_number("SELECT count(*) FROM sqlite_schema "
		       "WHERE sql IS NOT NULL AND name GLOB 'once_*'"),
	    n);
	for (size_t i = 0; i < n; i++) {
		const char *p = strstr(text[i], "once_");

		assert_non_null(p);
		snprintf(
		    name, sizeof(name), "'%.*s'", (int)strcspn(p, "( "), p);
		if (strstr(queries_text(QUERY_MISSING_PARTS), name) == NULL ||
		    strstr(queries_text(QUERY_FOREIGN_PARTS), name) == NULL)
			fail_msg("%s", name);
		snprintf(sql, sizeof(sql),
		    "SELECT count(*) FROM sqlite_schema WHERE name = %s", name);
		assert_int_equal(raw_number(sql), 1);
	}
}

/* With and without the right to create. */
static void
refused_and_left_alone(int version, const char *why)
{
	struct store_options o = options();
	char err[256] = "", number[16];
	int64_t keys;

	rawf("PRAGMA user_version = %d", version);
	raw("CREATE TABLE IF NOT EXISTS once_other(x)");
	keys = raw_number("SELECT count(*) FROM sqlite_schema");
	snprintf(number, sizeof(number), "version %d", version);
	for (int i = 0; i < 2; i++) {
		o.create = i == 0;
		assert_int_equal(
		    store_open(&store, &o, err, sizeof(err)), RC_VERSION);
		assert_null(store);
		assert_non_null(strstr(err, file));
		assert_non_null(strstr(err, number));
		assert_non_null(strstr(err, why));
		assert_non_null(strstr(err, "name another file"));
	}
	assert_int_equal(raw_number("PRAGMA user_version"), version);
	assert_int_equal(
	    raw_number("SELECT count(*) FROM sqlite_schema"), keys);
}

#define OTHER_TEST(name) TEST_WITH(name, setup_other, teardown)

OTHER_TEST(another_version_is_refused_and_left_alone)
{
	static const struct {
		int version;
		const char *why;
	} rows[] = {
		{ SCHEMA_VERSION + 1, "newer release" },
		{ SCHEMA_VERSION - 1, "older release" },
		{ 1, "older release" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		refused_and_left_alone(rows[i].version, rows[i].why);
}

#define PROCESSES 4

/* Each writes the secret that it sees. */
NEW_TEST(of_several_processes_that_create_one_does)
{
	unsigned char secret[PROCESSES][SCOPE_SECRET_LEN];
	int i, round, go[2], done[2];
	pid_t pid[PROCESSES];
	char c;

	for (round = 0; round < 5; round++) {
		empty_dir();
		assert_int_equal(pipe(go), 0);
		assert_int_equal(pipe(done), 0);
		for (i = 0; i < PROCESSES; i++) {
			assert_int_not_equal(pid[i] = fork(), -1);
			if (pid[i] != 0)
				continue;
			be_child();
			close(go[1]);
			(void)!read(go[0], &c, 1);
			store = open_store();
			(void)!write(
			    done[1], store_secret(store), SCOPE_SECRET_LEN);
			_exit(0);
		}
		close(go[0]);
		close(go[1]); /* now */
		close(done[1]);
		for (i = 0; i < PROCESSES; i++)
			assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
		assert_int_equal(
		    read(done[0], secret, sizeof(secret)), sizeof(secret));
		for (i = 1; i < PROCESSES; i++)
			assert_memory_equal(
			    secret[i], secret[0], SCOPE_SECRET_LEN);
		close(done[0]);
		assert_int_equal(
		    raw_number("PRAGMA user_version"), SCHEMA_VERSION);
	}
}

/* No file is made. */
static void
refused_by(const char *word)
{
	struct store_options o = options();
	char err[256] = "";

	assert_int_equal(store_open(&store, &o, err, sizeof(err)), RC_IO);
	assert_null(store);
	assert_non_null(strstr(err, file));
	assert_non_null(strstr(err, word));
	assert_int_equal(access(file, F_OK), -1);
}

NEW_TEST(an_sqlite_that_does_not_sync_is_refused)
{
	built_with = "NO_SYNC";
	refused_by("SQLITE_NO_SYNC");
	built_with = NULL;
}

NEW_TEST(an_sqlite_for_one_thread_is_refused)
{
	built_for_one_thread = true;
	refused_by("SQLITE_THREADSAFE");
	built_for_one_thread = false;
}
