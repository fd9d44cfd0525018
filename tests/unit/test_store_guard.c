/*
 * The files of a store: what is refused when it is opened, and what is noticed
 * when they are removed, replaced or overwritten while it is open.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>

#define PATIENCE 500
#include "store_fixture.h"
#include "store_impl.h"

static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };

static const char *
beside(const char *suffix)
{
	return textf("%s%s", file, suffix);
}

static void
make(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool
holds(const char *name, const char *text)
{
	char buffer[100] = "";
	int fd = open(name, O_RDONLY);
	ssize_t n;

	assert_int_not_equal(fd, -1);
	n = read(fd, buffer, sizeof(buffer) - 1);
	close(fd);
	return n == (ssize_t)strlen(text) && strcmp(buffer, text) == 0;
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

/* Each of the files in turn is another one by a link. */
static void
assert_refused_as_link(
    int (*make_link)(const char *, const char *), const char *text)
{
	static const char *const names[] = { "", "-wal", "-shm", "-lock",
		"-journal" };
	struct stat st;

	for (size_t i = 0; i < COUNT(names); i++) {
		empty_dir();
		make(beside("-other"), "precious");
		if (i > 0) {
			store_close(open_store());
			(void)unlink(beside(names[i]));
		}
		assert_int_equal(
		    make_link(beside("-other"), beside(names[i])), 0);
		assert_true(is_refused(text));
		assert_true(holds(beside("-other"), "precious"));
		assert_int_equal(stat(beside("-other"), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
}

DIR_TEST(a_file_that_is_a_symbolic_link_is_refused)
{
	assert_refused_as_link(symlink, "symbolic link");
}

DIR_TEST(a_file_with_a_second_name_is_refused)
{
	assert_refused_as_link(link, "names (hard links)");
}

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

/* Removed, and replaced by a copy; found again when it is put back. */
STORE_TEST(a_file_that_is_not_in_place_ends_reading_and_writing)
{
	char why[256];

	put_answer("done", 5000);
	for (size_t i = 0; i < COUNT(suffixes); i++) {
		assert_ok(look_for("done"));
		assert_int_equal(
		    rename(beside(suffixes[i]), beside("-aside")), 0);
		for (int replaced = 0; replaced < 2; replaced++) {
			if (replaced)
				make(beside(suffixes[i]), "");
			assert_int_equal(look_for("done"), RC_REPLACED);
			assert_int_equal(reserve_fails("k"), RC_REPLACED);
			assert_false(store_health(store, why, sizeof(why)));
			assert_non_null(strstr(why, beside(suffixes[i])));
			assert_non_null(strstr(why, "removed or replaced"));
		}
		assert_int_equal(
		    rename(beside("-aside"), beside(suffixes[i])), 0);
	}
	assert_ok(look_for("done"));
	assert_true(store_health(store, why, sizeof(why)));
	reserve("k");
}

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
	uint64_t generation = 0;

	reserve("k");
	while (atomic_load(&store->guard.quiet) == 0) {
		assert_ok(look_for("k"));
		(void)store_wait(store, &generation, clock_mono() + 100);
	}
	assert_int_equal(rename(file, beside("-aside")), 0);
	assert_int_equal(look_for("k"), RC_REPLACED);
	assert_int_equal(rename(beside("-aside"), file), 0);
	assert_ok(look_for("k"));
}

STORE_TEST(an_outcome_is_not_recorded_in_a_file_that_was_renamed)
{
	struct store_lease lease = reserve("k");
	uint64_t generation = 0;

	assert_int_equal(rename(file, beside("-aside")), 0);
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_PENDING);
	assert_int_equal(rename(beside("-aside"), file), 0);
	while (look_for("k") != RC_OK || state_of("k") != RECORD_COMPLETED)
		(void)store_wait(store, &generation, clock_mono() + 100);
}

/* As `cp` or `.restore`: the same file, with the content of that one. */
static void
overwrite_with(const char *copy)
{
	sqlite3 *from = raw_open(copy), *to = raw_open(file);
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");

	assert_non_null(b);
	assert_int_equal(sqlite3_backup_step(b, -1), SQLITE_DONE);
	assert_int_equal(sqlite3_backup_finish(b), SQLITE_OK);
	sqlite3_close(from);
	sqlite3_close(to);
}

static void
save_as(const char *copy)
{
	rawf("VACUUM INTO '%s'", copy);
}

STORE_TEST(a_copy_from_before_the_last_reservation_is_noticed)
{
	struct store_lease lease;

	save_as(beside("-copy"));
	lease = reserve("k");
	overwrite_with(beside("-copy"));
	assert_int_equal(finish(&lease, outcome(RECORD_COMPLETED)), RC_PENDING);
	assert_int_equal(reserve_fails("l"), RC_WENT_BACK);
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
