/*
 * liveness: which processes are alive, as the same process and others see it,
 * killed or not; and a lock file that has been replaced.
 */
#include "config.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cases.h"

#include "liveness.h"
#include "log.h"

static char dir[64], database[96], lock[128];

static int
setup(UNUSED void **state)
{
	log_set_level(LOG_ERROR + 1);
	snprintf(dir, sizeof(dir), "/tmp/oncewrap-live-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(database, sizeof(database), "%s/db", dir);
	snprintf(lock, sizeof(lock), "%s-lock", database);
	return 0;
}

static int
teardown(UNUSED void **state)
{
	unlink(lock);
	return rmdir(dir);
}

static bool
alive(const struct liveness *l, int64_t owner)
{
	bool is = false;

	assert_ok(liveness_alive(l, owner, &is));
	return is;
}

TEST(two_of_one_process_see_each_other)
{
	struct liveness *a, *b;
	int64_t name;

	assert_ok(liveness_open(&a, database, 0600));
	assert_ok(liveness_open(&b, database, 0600));
	assert_true(liveness_self(a) > 0);
	assert_true(liveness_self(a) < INT64_C(1) << 62);
	assert_int_not_equal(liveness_self(a), liveness_self(b));
	assert_true(alive(a, liveness_self(a)));
	assert_true(alive(a, liveness_self(b)));
	assert_true(alive(b, liveness_self(a)));
	name = liveness_self(b);
	liveness_close(b);
	assert_false(alive(a, name));
	assert_true(alive(a, liveness_self(a)));
	liveness_close(a);
	liveness_close(NULL);
}

TEST(who_is_alone_knows_it)
{
	struct liveness *a, *b;

	assert_ok(liveness_open(&a, database, 0600));
	assert_true(liveness_is_alone(a));
	assert_ok(liveness_open(&b, database, 0600));
	assert_false(liveness_is_alone(a));
	liveness_close(b);
	assert_true(liveness_is_alone(a));
	unlink(lock);
	assert_false(liveness_is_alone(a));
	liveness_close(a);
}

/* The search for a free byte comes to an end. */
TEST(no_process_begins_to_live_while_all_bytes_are_taken)
{
	struct liveness *a, *b;

	assert_ok(liveness_open(&a, database, 0600));
	assert_ok(liveness_open(&b, database, 0600));
	assert_int_equal(liveness_take_all(a), RC_BUSY);
	liveness_close(b);
	assert_ok(liveness_take_all(a));
	alarm(30);
	assert_int_equal(liveness_open(&b, database, 0600), RC_BUSY);
	alarm(0);
	assert_null(b);
	assert_true(alive(a, liveness_self(a)));
	liveness_close(a);
	assert_ok(liveness_open(&b, database, 0600));
	unlink(lock);
	assert_int_equal(liveness_take_all(b), RC_IO);
	liveness_close(b);
}

/* A child that owns leases; its name comes through the pipe. */
static pid_t
child(int64_t *name)
{
	struct liveness *l;
	int64_t self;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (liveness_open(&l, database, 0600) != RC_OK)
			_exit(1);
		self = liveness_self(l);
		if (write(fd[1], &self, sizeof(self)) != sizeof(self))
			_exit(1);
		for (;;)
			pause();
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], name, sizeof(*name)), sizeof(*name));
	close(fd[0]);
	return pid;
}

TEST(a_killed_process_is_dead_at_once)
{
	struct liveness *l;
	int64_t name;
	pid_t pid;

	pid = child(&name);
	assert_ok(liveness_open(&l, database, 0600));
	assert_true(alive(l, name));
	kill(pid, SIGSTOP); /* stopped is alive */
	assert_true(alive(l, name));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(alive(l, name));
	liveness_close(l);
	assert_ok(liveness_open(&l, database, 0600));
	assert_false(alive(l, name));
	liveness_close(l);
}

TEST(no_process_has_a_name_that_is_none)
{
	struct liveness *l;
	bool is = false;

	assert_ok(liveness_open(&l, database, 0600));
	assert_int_equal(liveness_alive(l, 0, &is), RC_INVALID);
	assert_true(is);
	is = false;
	assert_int_equal(liveness_alive(l, -1, &is), RC_INVALID);
	assert_true(is);
	liveness_close(l);
}

TEST(a_lock_file_that_was_removed_tells_nothing)
{
	struct liveness *l, *later;
	bool is = false;

	assert_ok(liveness_open(&l, database, 0600));
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(liveness_alive(l, 12345, &is), RC_IO);
	assert_true(is);
	/* nor does another file of that name */
	assert_ok(liveness_open(&later, database, 0600));
	is = false;
	assert_int_equal(liveness_alive(l, 12345, &is), RC_IO);
	assert_true(is);
	assert_true(alive(l, liveness_self(l)));
	liveness_close(l);
	liveness_close(later);
}

TEST(the_file_is_empty_and_has_the_mode_asked_for)
{
	struct liveness *l;
	struct stat st;
	mode_t old = umask(0077);

	unlink(lock);
	assert_ok(liveness_open(&l, database, 0660));
	umask(old);
	assert_int_equal(stat(lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_size, 0);
	liveness_close(l);
	/* one that is there keeps its own */
	assert_ok(liveness_open(&l, database, 0600));
	assert_int_equal(stat(lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	liveness_close(l);
}

TEST(a_file_that_cannot_be_made)
{
	struct liveness *l;

	assert_int_equal(
	    liveness_open(&l, "/nonexistent/oncewrap/db", 0600), RC_IO);
	assert_null(l);
}

GROUP(setup, teardown)
