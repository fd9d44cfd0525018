/*
 * The files of a store: what is refused when it is opened, and what is noticed
 * while it is open.  Each of them is removed, replaced and overwritten in
 * tests/system/test_files.py.
 */
#include "config.h"

#include <sys/stat.h>

#define PATIENCE 500
#include "store_fixture.h"
#include "store_impl.h"

static const char *
beside(const char *suffix)
{
	return textf("%s%s", file, suffix);
}

/* Whether a daemon is refused it, with a text that has that in it. */
static bool
is_refused(const char *text)
{
	struct store_options o = options();
	char err[512] = "";

	if (store_open(&store, &o, err, sizeof(err)) == RC_OK)
		return false;
	assert_null(store);
	if (strstr(err, text) == NULL)
		fail_msg("no \"%s\" in \"%s\"", text, err);
	return true;
}

static enum rc
look_for(const char *key)
{
	const struct store_identity who = { "alice", "/payments", key };
	struct record r;
	enum rc rc = store_find(store, &who, &r);

	if (rc == RC_OK)
		record_free(&r);
	return rc;
}

/* --- opening ------------------------------------------------------------- */

DIR_TEST(a_file_that_is_a_folder_or_a_pipe_is_refused)
{
	assert_int_equal(mkdir(file, 0700), 0);
	assert_true(is_refused("not a file"));
	assert_int_equal(rmdir(file), 0);
	store_close(open_store());
	assert_int_equal(mkfifo(beside("-wal"), 0600), 0);
	assert_true(is_refused("not a file"));
}

DIR_TEST(a_database_of_another_user_is_refused)
{
	if (geteuid() != 0)
		skip();
	store_close(open_store());
	assert_int_equal(chown(file, 12345, (gid_t)-1), 0);
	assert_true(is_refused("belongs to user 12345"));
	/* where the folder is that user's, it may be */
	assert_int_equal(chown(dir, 12345, (gid_t)-1), 0);
	store = open_store();
	assert_int_equal(chown(dir, 0, (gid_t)-1), 0);
}

DIR_TEST(a_log_of_another_user_is_not)
{
	sqlite3 *other;

	if (geteuid() != 0)
		skip();
	store_close(open_store());
	other = raw_open(file);
	raw_read(other);
	raw_run(other, "COMMIT");
	assert_int_equal(chown(beside("-wal"), 12345, (gid_t)-1), 0);
	assert_int_equal(chown(beside("-shm"), 12345, (gid_t)-1), 0);
	store = open_store();
	reserve("k");
	sqlite3_close(other);
}

DIR_TEST(a_database_that_another_keeps_out_of_wal_mode_is_refused)
{
	struct store_options o = options();
	char err[512] = "";
	sqlite3 *db;

	store_close(open_store());
	db = raw_open(file);
	raw_run(db, "PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE");
	o.busy_timeout = 50;
	assert_int_equal(store_open(&store, &o, err, sizeof(err)), RC_BUSY);
	assert_non_null(strstr(err, "not in WAL mode"));
	raw_run(db, "COMMIT");
	sqlite3_close(db);
	store = open_store();
}

/* --- while it is open ----------------------------------------------------- */

STORE_TEST(a_symbolic_link_to_the_file_itself_is_not_in_place)
{
	reserve("k");
	assert_int_equal(rename(file, beside("-aside")), 0);
	assert_int_equal(symlink(beside("-aside"), file), 0);
	assert_int_equal(look_for("k"), RC_REPLACED);
	assert_int_equal(rename(beside("-aside"), file), 0);
}

/* A look that trusts the folder's time sees a change all the same. */
STORE_TEST(a_change_after_a_long_rest_is_noticed)
{
	reserve("k");
	while (atomic_load(&store->guard.quiet) == 0) {
		assert_ok(look_for("k"));
		rest(100);
	}
	assert_int_equal(rename(file, beside("-aside")), 0);
	assert_int_equal(look_for("k"), RC_REPLACED);
	assert_int_equal(rename(beside("-aside"), file), 0);
	assert_ok(look_for("k"));
}

STORE_TEST(an_outcome_is_not_recorded_in_a_file_that_was_renamed)
{
	struct store_lease lease = reserve("k");

	assert_int_equal(rename(file, beside("-aside")), 0);
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_PENDING);
	assert_int_equal(rename(beside("-aside"), file), 0);
	while (look_for("k") != RC_OK || state_of("k") != RECORD_COMPLETED)
		rest(10);
}

/* Each of them takes the newest key, and the number of a new key is higher. */
STORE_TEST(deleting_keys_is_not_going_back)
{
	struct store_lease lease[4];

	lease[0] = reserve("a");
	settle_for(&lease[0], RECORD_COMPLETED, 0);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	lease[1] = put("a", RECORD_UNKNOWN);
	forget_key(lease[1].id);
	lease[2] = reserve("a");
	delete_all(KEYS);
	lease[3] = reserve("a");
	for (int i = 1; i < 4; i++)
		assert_true(lease[i].id > lease[i - 1].id);
}

STORE_TEST(an_empty_file_in_its_place_runs_nothing)
{
	put_answer("done", 10);
	raw("PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(truncate(file, 0), 0);
	assert_int_not_equal(reserve_fails("k"), RC_OK);
}

/* Whatever stands under the number of a row that was found. */
STORE_TEST(an_answer_belongs_to_its_key_and_not_to_a_number)
{
	static const struct store_identity others[] = {
		{ "bob", "/payments", "done" },
		{ "alice", "/refunds", "done" },
		{ "alice", "/payments", "other" },
	};
	struct store_lease lease = put_answer("done", 5000);
	struct response r;
	struct spool *body;

	assert_true(answer_is(lease.id, 5000));
	for (size_t i = 0; i < COUNT(others); i++) {
		response_init(&r);
		assert_int_equal(
		    store_answer(store, &others[i], lease.id, &r, &body),
		    RC_NOTFOUND);
		assert_null(body);
		response_free(&r);
	}
}

/* --- what others put into it ---------------------------------------------- */

STORE_TEST(a_view_in_place_of_a_table_is_not_read)
{
	put_answer("done", 10);
	replace_a_table_by_a_view();
	assert_int_not_equal(look_for("done"), RC_OK);
	assert_int_not_equal(reserve_fails("done"), RC_OK);
}
