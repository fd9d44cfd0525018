/*
 * A run of a handler: real programs, real signals.  What a handler gets and how
 * it is ended is for the system tests.
 */
#include "config.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "run_wait.h"
#include "user.h"
#include "spool.h"

#define FAR 60000 /* ms: a deadline that no test reaches */

/* The run of a test: what is asked for, how it ended, and its output. */
static struct run_spec spec;
static struct run_facts facts;
static char *out;
static size_t out_len;

static char *const no_env[] = { (char *)(uintptr_t) "A=1", NULL };

static const struct log_request request_log = { .instance = "urn:uuid:test" };

static int
set_defaults(UNUSED void **state)
{
	memset(&spec, 0, sizeof(spec));
	spec.envp = no_env;
	spec.program.umask = -1;
	spec.body_fd = -1;
	spec.held = -1;
	spec.program.timeout = FAR;
	spec.program.kill_after = FAR;
	spec.program.max_output = UINT64_MAX;
	spec.log = &request_log;
	return 0;
}

static int
free_output(UNUSED void **state)
{
	free(out);
	out = NULL;
	return 0;
}

AROUND_EACH(set_defaults, free_output)

/* The handler: a program with up to two arguments. */
static void
handler_is(const char *path, const char *first, const char *second)
{
	static char *argv[4];

	argv[0] = (char *)(uintptr_t)path;
	argv[1] = (char *)(uintptr_t)first;
	argv[2] = (char *)(uintptr_t)second;
	spec.program.argv.item = argv;
}

static struct run *
start(void)
{
	struct run *run = run_wait_begin(run_start(&spec, &facts), &facts);

	assert_non_null(run);
	return run;
}

/* Runs the handler to its end. */
static void
capture(void)
{
	struct spool *spool = spool_new();
	struct run *run = run_wait_begin(run_start(&spec, &facts), &facts);
	const void *bytes;
	enum rc rc;

	(void)free_output(NULL);
	if (run != NULL) {
		run_wait_capture(run, spool, &facts);
		out_len = (size_t)spool_length(spool);
		bytes = spool_bytes(spool, &rc);
		out = calloc(1, out_len + 1);
		assert_non_null(out);
		if (out_len > 0)
			memcpy(out, bytes, out_len);
	}
	spool_free(spool);
}

/* A shell script as the handler. */
static void
sh(const char *script)
{
	handler_is("/bin/sh", "-c", script);
	capture();
}

struct row {
	const char *name, *script, *out;
	enum run_end end;
	int exit_status, signal;
};

static const struct row rows[] = {
	{ "exit status with output", "echo x; exit 3", "x\n", RUN_EXITED, 3,
	    0 },
	{ "killed by SIGKILL after output", "echo x; kill -9 $$", "x\n",
	    RUN_SIGNALED, 0, SIGKILL },
	{ "killed by SIGSEGV", "kill -SEGV $$", "", RUN_SIGNALED, 0, SIGSEGV },
	{ "closes its output and goes on", "exec >&-; exit 4", "", RUN_EXITED,
	    4, 0 },
	{ "stdin is empty without a body", "cat", "", RUN_EXITED, 0, 0 },
};

TEST(every_row)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];

		sh(row->script);
		if (facts.end != row->end ||
		    facts.exit_status != row->exit_status ||
		    facts.signal != row->signal || strcmp(out, row->out) != 0)
			fail_msg("%s: end %d exit %d signal %d output \"%s\"",
			    row->name, (int)facts.end, facts.exit_status,
			    facts.signal, out);
	}
}

TEST(held_descriptor_is_inherited_as_3)
{
	int fd = memfd_create("held", MFD_CLOEXEC);

	spec.held = fd;
	sh("echo x >&3; sh -c 'echo y >&3'; exec ls /proc/self/fd");
	assert_string_equal(out, "0\n1\n2\n3\n4\n");
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	close(fd);
}

TEST(group_has_its_grace_though_the_program_is_gone)
{
	spec.program.timeout = 50;
	/* The shell dies of SIGTERM at once, its child takes a moment. */
	sh("sh -c 'trap \"i=0; while [ \\$i -lt 99999 ]; do i=\\$((i+1)); "
	   "done; echo clean; exit 0\" TERM; echo on; while :; do :; done' & "
	   "wait");
	assert_int_equal(facts.end, RUN_TIMEOUT);
	assert_string_equal(out, "on\nclean\n");
}

/* The program has exited before any of its output is read. */
static void
ends_late(const char *script, uint64_t max_output, enum run_end end)
{
	struct spool *spool = spool_new();
	struct run *run;
	siginfo_t info;

	handler_is("/bin/sh", "-c", script);
	spec.program.max_output = max_output;
	run = start();
	assert_int_equal(
	    waitid(P_PID, (id_t)run_pid(run), &info, WEXITED | WNOWAIT), 0);
	run_wait_capture(run, spool, &facts);
	assert_int_equal(facts.end, end);
	spool_free(spool);
}

TEST(too_much_output_counts_after_the_exit)
{
	static const char script[] = "head -c 20000 /dev/zero";

	ends_late(script, 19999, RUN_OUTPUT_LIMIT);
	ends_late(script, 20000, RUN_EXITED);
	ends_late("head -c 20000 /dev/zero; kill -9 $$", 1, RUN_SIGNALED);
}

TEST(discarded_output_does_not_block_it)
{
	struct run *run;

	handler_is("/bin/sh", "-c", "head -c 1000000 /dev/zero; exit 7");
	spec.streaming = true;
	run = start();
	run_discard(run);
	run_wait_finish(run, &facts);
	assert_int_equal(facts.end, RUN_EXITED);
	assert_int_equal(facts.exit_status, 7);
}

TEST(full_disk_ends_it)
{
	struct spool *spool = spool_new();
	struct run *run;

	assert_ok(spool_setup("/nonexistent-folder", UINT64_MAX));
	handler_is("/bin/sh", "-c", "head -c 1000000 /dev/zero; sleep 1002");
	run = start();
	run_wait_capture(run, spool, &facts);
	assert_int_equal(facts.end, RUN_CAPTURE_FAILED);
	assert_ok(spool_setup("/tmp", UINT64_MAX));
	spool_free(spool);
}

TEST(unknown_user_is_named)
{
	static const struct {
		const char *user, *group, *err;
	} unknown[] = {
		{ "nosuchuser", NULL, "no such user: nosuchuser" },
		{ NULL, "nosuchgroup", "no such group: nosuchgroup" },
		{ "4000000001", NULL,
		    "no such user: 4000000001; its group must be named" },
	};
	struct user user;
	char err[128];

	for (size_t i = 0; i < COUNT(unknown); i++) {
		assert_false(user_find(unknown[i].user, unknown[i].group, &user,
		    err, sizeof(err)));
		assert_string_equal(err, unknown[i].err);
	}
}

TEST(number_without_an_account_is_a_user_with_a_group)
{
	struct user user;
	char err[128];

	assert_true(
	    user_find("4000000001", "nogroup", &user, err, sizeof(err)));
	assert_true(user.change);
	assert_int_equal(user.uid, 4000000001);
	assert_int_equal(user.gid, 65534);
	assert_int_equal(user.ngroups, 1);
	assert_int_equal(user.groups[0], 65534);
}

static int
begin_group(UNUSED void **state)
{
	return run_init() == RC_OK ? 0 : -1;
}

GROUP(begin_group, NULL)
