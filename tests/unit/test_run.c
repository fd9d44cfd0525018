/*
 * A run of a handler: real programs, real signals.  Where a test must know
 * that a program has got somewhere, the program says so on its output.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "run.h"
#include "user.h"
#include "spool.h"

#define FAR 60000 /* ms: a deadline that no test reaches */

struct result {
	struct run_facts facts;
	char *out;
	size_t len;
};

static char *const no_env[] = { (char *)(uintptr_t) "A=1", NULL };

static const struct log_request request_log = { .instance = "urn:uuid:test" };

static void
spec_init(struct run_spec *spec, char *const *argv)
{
	memset(spec, 0, sizeof(*spec));
	spec->program.argv.item = (char **)(uintptr_t)argv;
	spec->envp = no_env;
	spec->program.umask = -1;
	spec->body_fd = -1;
	spec->held = -1;
	spec->program.timeout = FAR;
	spec->program.kill_after = FAR;
	spec->program.max_output = UINT64_MAX;
	spec->log = &request_log;
}

static void
capture(const struct run_spec *spec, struct result *result)
{
	struct spool *spool = spool_new();
	struct run *run;
	const void *bytes;
	enum rc rc;

	memset(result, 0, sizeof(*result));
	if ((run = run_start(spec, &result->facts)) != NULL) {
		run_capture(run, spool, &result->facts);
		result->len = (size_t)spool_length(spool);
		bytes = spool_bytes(spool, &rc);
		result->out = calloc(1, result->len + 1);
		if (result->len > 0)
			memcpy(result->out, bytes, result->len);
	}
	spool_free(spool);
}

/* A shell script as the handler. */
static void
sh(const char *script, struct run_spec *spec, struct result *result)
{
	char *argv[4];

	argv[0] = (char *)(uintptr_t) "/bin/sh";
	argv[1] = (char *)(uintptr_t) "-c";
	argv[2] = (char *)(uintptr_t)script;
	argv[3] = NULL;
	spec->program.argv.item = (char **)(uintptr_t)argv;
	capture(spec, result);
}

struct row {
	const char *name, *script, *out;
	enum run_end end;
	int exit_status, signal;
};

static const struct row rows[] = {
	{ "exit 0 with output", "echo hello", "hello\n", RUN_EXITED, 0, 0 },
	{ "exit 0 without output", ":", "", RUN_EXITED, 0, 0 },
	{ "exit status 3", "echo x; exit 3", "x\n", RUN_EXITED, 3, 0 },
	{ "exit status 75", "exit 75", "", RUN_EXITED, 75, 0 },
	{ "killed by SIGKILL after output", "echo x; kill -9 $$", "x\n",
	    RUN_SIGNALED, 0, SIGKILL },
	{ "killed by SIGSEGV", "kill -SEGV $$", "", RUN_SIGNALED, 0, SIGSEGV },
	{ "dies of SIGPIPE: it is not ignored", "kill -PIPE $$; echo alive", "",
	    RUN_SIGNALED, 0, SIGPIPE },
	{ "dies of SIGTERM: it is not blocked", "kill -TERM $$; echo alive", "",
	    RUN_SIGNALED, 0, SIGTERM },
	{ "closes its output and goes on", "exec >&-; exit 4", "", RUN_EXITED,
	    4, 0 },
	{ "stdin is empty without a body", "cat", "", RUN_EXITED, 0, 0 },
	{ "own session and process group",
	    "set -- $(cat /proc/$$/stat); test $$ = $5 && test $$ = $6 && "
	    "echo yes",
	    "yes\n", RUN_EXITED, 0, 0 },
	/* ls itself has 3, the folder it reads. */
	{ "only descriptors 0, 1 and 2", "exec ls /proc/self/fd",
	    "0\n1\n2\n3\n", RUN_EXITED, 0, 0 },
	{ "the environment given, and no other",
	    "test \"$A\" = 1 && test -z \"$HOME$USER\" && echo yes", "yes\n",
	    RUN_EXITED, 0, 0 },
	{ "works in the program's folder",
	    "test \"$(pwd -P)\" = \"$(cd /bin && pwd -P)\" && echo yes",
	    "yes\n", RUN_EXITED, 0, 0 },
};

TEST(test_rows)
{
	struct run_spec spec;
	struct result result;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];

		spec_init(&spec, NULL);
		sh(row->script, &spec, &result);
		if (result.facts.end != row->end ||
		    result.facts.exit_status != row->exit_status ||
		    result.facts.signal != row->signal ||
		    strcmp(result.out, row->out) != 0)
			fail_msg("%s: end %d exit %d signal %d output \"%s\"",
			    row->name, (int)result.facts.end,
			    result.facts.exit_status, result.facts.signal,
			    result.out);
		free(result.out);
	}
}

TEST(test_a_process_left_behind_does_not_delay_the_end)
{
	static const char *const scripts[] = {
		"sleep 1000 & echo $!",            /* holds both pipes */
		"sleep 1000 >/dev/null & echo $!", /* holds stderr */
		"sleep 1000 2>/dev/null & echo $!" /* holds stdout */
	};
	struct run_spec spec;
	struct result result;
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		spec_init(&spec, NULL);
		sh(scripts[i], &spec, &result);
		assert_int_equal(result.facts.end, RUN_EXITED);
		/* It lives on, as it would under any CGI server. */
		assert_int_equal(kill(atoi(result.out), SIGKILL), 0);
		free(result.out);
	}
}

TEST(test_missing_program_is_not_started)
{
	char *argv[] = { (char *)(uintptr_t) "/nonexistent/program", NULL };
	struct run_spec spec;
	struct result result;

	spec_init(&spec, argv);
	capture(&spec, &result);
	assert_int_equal(result.facts.end, RUN_NOT_STARTED);
	assert_int_equal(result.facts.error, ENOENT);
}

TEST(test_program_without_x_bit_is_not_started)
{
	char path[] = "/tmp/test_run.XXXXXX";
	char *argv[] = { path, NULL };
	struct run_spec spec;
	struct result result;

	close(mkstemp(path));
	spec_init(&spec, argv);
	capture(&spec, &result);
	unlink(path);
	assert_int_equal(result.facts.end, RUN_NOT_STARTED);
	assert_int_equal(result.facts.error, EACCES);
}

TEST(test_missing_directory_is_not_started)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/true", NULL };
	struct run_spec spec;
	struct result result;

	spec_init(&spec, argv);
	spec.program.directory = "/nonexistent";
	capture(&spec, &result);
	assert_int_equal(result.facts.end, RUN_NOT_STARTED);
	/* Not ENOENT: the program is there. */
	assert_int_equal(result.facts.error, ECANCELED);
}

TEST(test_directory_and_umask_are_set)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	spec.program.directory = "/usr";
	spec.program.umask = 027;
	sh("pwd; umask", &spec, &result);
	assert_string_equal(result.out, "/usr\n0027\n");
	free(result.out);
}

TEST(test_body_is_a_file_at_its_beginning)
{
	static const size_t sizes[] = { 1, 100, 65536, 65537, 3000000 };
	struct run_spec spec;
	struct result result;
	struct spool *spool;
	char *body, expect[64];
	enum rc rc;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		body = malloc(sizes[i]);
		memset(body, 'b', sizes[i]);
		spool = spool_new();
		assert_int_equal(spool_write(spool, body, sizes[i]), RC_OK);
		spec_init(&spec, NULL);
		spec.body = spool_bytes(spool, &rc);
		spec.body_len = sizes[i];
		spec.body_fd = spool_fd(spool);
		sh("test -f /dev/stdin && wc -c", &spec, &result);
		snprintf(expect, sizeof(expect), "%zu\n", sizes[i]);
		assert_string_equal(result.out, expect);
		free(result.out);
		spool_free(spool);
		free(body);
	}
}

TEST(test_body_echoed_while_it_is_read_does_not_deadlock)
{
	struct run_spec spec;
	struct result result;
	size_t size = 4000000;
	char *body = malloc(size);
	int fd = memfd_create("body", MFD_CLOEXEC);

	memset(body, 'e', size);
	assert_int_equal(write(fd, body, size), size);
	spec_init(&spec, NULL);
	spec.body = body;
	spec.body_len = size;
	spec.body_fd = fd;
	sh("cat", &spec, &result);
	assert_int_equal(result.len, size);
	assert_memory_equal(result.out, body, size);
	free(result.out);
	close(fd);
	free(body);
}

TEST(test_held_descriptor_is_inherited_as_3)
{
	struct run_spec spec;
	struct result result;
	int fd = memfd_create("held", MFD_CLOEXEC);

	spec_init(&spec, NULL);
	spec.held = fd;
	sh("echo x >&3; sh -c 'echo y >&3'; exec ls /proc/self/fd", &spec,
	    &result);
	assert_string_equal(result.out, "0\n1\n2\n3\n4\n");
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	free(result.out);
	close(fd);
}

TEST(test_timeout_ends_by_sigterm)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	spec.program.timeout = 50;
	sh("trap 'echo term; exit 0' TERM; echo on; while :; do sleep 0.01; "
	   "done",
	    &spec, &result);
	assert_int_equal(result.facts.end, RUN_TIMEOUT);
	assert_string_equal(result.out, "on\nterm\n");
	free(result.out);
}

TEST(test_group_has_its_grace_though_the_program_is_gone)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	spec.program.timeout = 50;
	/* The shell dies of SIGTERM at once, its child takes a moment. */
	sh("sh -c 'trap \"i=0; while [ \\$i -lt 99999 ]; do i=\\$((i+1)); "
	   "done; echo clean; exit 0\" TERM; echo on; while :; do :; done' & "
	   "wait",
	    &spec, &result);
	assert_int_equal(result.facts.end, RUN_TIMEOUT);
	assert_string_equal(result.out, "on\nclean\n");
	free(result.out);
}

TEST(test_timeout_ends_the_whole_group_by_sigkill)
{
	struct run_spec spec;
	struct result result;
	char path[64];
	pid_t grandchild;

	spec_init(&spec, NULL);
	spec.program.timeout = 50;
	spec.program.kill_after = 50;
	sh("trap '' TERM; sh -c 'echo $$; exec sleep 1001' & wait; wait", &spec,
	    &result);
	assert_int_equal(result.facts.end, RUN_TIMEOUT);
	grandchild = atoi(result.out);
	assert_true(grandchild > 1);
	/* The process that adopted the orphan waits for it. */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)grandchild);
	while (access(path, F_OK) == 0)
		sched_yield();
	free(result.out);
}

TEST(test_too_much_output_ends_it)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	spec.program.max_output = 100000;
	sh("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", &spec,
	    &result);
	assert_int_equal(result.facts.end, RUN_OUTPUT_LIMIT);
	assert_true(result.len <= 100000 + 65536);
	free(result.out);
}

/* The program has exited before any of its output is read. */
static void
capture_late(const char *script, uint64_t max_output, struct run_facts *facts)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh",
		(char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL };
	struct spool *spool = spool_new();
	struct run_spec spec;
	struct run *run;
	siginfo_t info;

	spec_init(&spec, argv);
	spec.program.max_output = max_output;
	run = run_start(&spec, facts);
	assert_non_null(run);
	assert_int_equal(
	    waitid(P_PID, (id_t)run_pid(run), &info, WEXITED | WNOWAIT), 0);
	run_capture(run, spool, facts);
	spool_free(spool);
}

TEST(test_too_much_output_counts_after_the_exit)
{
	static const char script[] = "head -c 20000 /dev/zero";
	struct run_facts facts;

	capture_late(script, 19999, &facts);
	assert_int_equal(facts.end, RUN_OUTPUT_LIMIT);
	capture_late(script, 20000, &facts);
	assert_int_equal(facts.end, RUN_EXITED);
	capture_late("head -c 20000 /dev/zero; kill -9 $$", 1, &facts);
	assert_int_equal(facts.end, RUN_SIGNALED);
}

TEST(test_output_as_long_as_the_limit_is_allowed)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	spec.program.max_output = 6;
	sh("echo hello", &spec, &result);
	assert_int_equal(result.facts.end, RUN_EXITED);
	assert_int_equal(result.len, 6);
	free(result.out);
}

TEST(test_a_megabyte_of_stderr_does_not_block)
{
	struct run_spec spec;
	struct result result;

	spec_init(&spec, NULL);
	sh("head -c 1000000 /dev/zero | tr '\\0' e >&2; echo done", &spec,
	    &result);
	assert_int_equal(result.facts.end, RUN_EXITED);
	assert_string_equal(result.out, "done\n");
	free(result.out);
}

TEST(test_stream_is_handed_on_before_the_end)
{
	int fds[2];
	char script[128], bytes[64];
	char *argv[] = { (char *)(uintptr_t) "/bin/sh",
		(char *)(uintptr_t) "-c", script, NULL };
	struct run_spec spec;
	struct run_facts facts;
	struct run *run;
	size_t n;

	assert_int_equal(pipe(fds), 0);
	/* It goes on only when what it wrote first has been seen. */
	snprintf(script, sizeof(script),
	    "echo one; read x < /proc/%d/fd/%d; echo two", (int)getpid(),
	    fds[0]);
	spec_init(&spec, argv);
	spec.streaming = true;
	run = run_start(&spec, &facts);
	assert_non_null(run);
	n = run_read(run, bytes, sizeof(bytes));
	assert_int_equal(n, 4);
	assert_memory_equal(bytes, "one\n", 4);
	assert_int_equal(write(fds[1], "\n", 1), 1);
	n = run_read(run, bytes, sizeof(bytes));
	assert_int_equal(n, 4);
	assert_memory_equal(bytes, "two\n", 4);
	assert_int_equal(run_read(run, bytes, sizeof(bytes)), 0);
	run_finish(run, &facts);
	assert_int_equal(facts.end, RUN_EXITED);
	close(fds[0]);
	close(fds[1]);
}

TEST(test_discarded_output_does_not_block_it)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/sh",
		(char *)(uintptr_t) "-c",
		(char *)(uintptr_t) "head -c 1000000 /dev/zero; exit 7", NULL };
	struct run_spec spec;
	struct run_facts facts;
	struct run *run;

	spec_init(&spec, argv);
	spec.streaming = true;
	run = run_start(&spec, &facts);
	assert_non_null(run);
	run_discard(run);
	run_finish(run, &facts);
	assert_int_equal(facts.end, RUN_EXITED);
	assert_int_equal(facts.exit_status, 7);
}

TEST(test_full_disk_ends_it)
{
	struct spool *spool = spool_new();
	char *argv[] = { (char *)(uintptr_t) "/bin/sh",
		(char *)(uintptr_t) "-c",
		(char *)(uintptr_t) "head -c 1000000 /dev/zero; sleep 1002",
		NULL };
	struct run_spec spec;
	struct run_facts facts;
	struct run *run;

	assert_int_equal(spool_setup("/nonexistent-folder", UINT64_MAX), RC_OK);
	spec_init(&spec, argv);
	run = run_start(&spec, &facts);
	assert_non_null(run);
	run_capture(run, spool, &facts);
	assert_int_equal(facts.end, RUN_CAPTURE_FAILED);
	assert_int_equal(spool_setup("/tmp", UINT64_MAX), RC_OK);
	spool_free(spool);
}

TEST(test_user_is_changed)
{
	struct run_spec spec;
	struct result result;

	if (geteuid() != 0)
		skip();
	spec_init(&spec, NULL);
	spec.program.user = "nobody";
	spec.program.directory = "/";
	sh("id -un; id -Gn; kill -0 $PPID 2>/dev/null && echo may", &spec,
	    &result);
	assert_string_equal(result.out, "nobody\nnogroup\n");
	free(result.out);
}

TEST(test_unknown_user_is_named)
{
	struct user user;
	char err[128];

	assert_false(user_find("nosuchuser", NULL, &user, err, sizeof(err)));
	assert_string_equal(err, "no such user: nosuchuser");
	assert_false(user_find(NULL, "nosuchgroup", &user, err, sizeof(err)));
	assert_string_equal(err, "no such group: nosuchgroup");
	assert_false(user_find("4000000001", NULL, &user, err, sizeof(err)));
	assert_string_equal(
	    err, "no such user: 4000000001; its group must be named");
}

TEST(test_number_without_an_account_is_a_user_with_a_group)
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

/* Kills the process that started a handler; the handler must go with it. */
static void
dies_with_its_parent(const char *user)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/sleep",
		(char *)(uintptr_t) "1003", NULL };
	struct run_spec spec;
	struct run_facts facts;
	struct pollfd pfd;
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	if ((pid = fork()) == 0) {
		/* The handler's stdout is the pipe's only other end. */
		close(fds[0]);
		spec_init(&spec, argv);
		spec.program.user = user;
		spec.program.directory = "/";
		spec.body = "x";
		spec.body_len = 1;
		/* As its stdin it inherits the pipe, through /proc. */
		spec.body_fd = fds[1];
		if (run_start(&spec, &facts) == NULL)
			_exit(1);
		if (write(fds[1], "s", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pfd.fd = fds[0];
	pfd.events = POLLIN;
	/* End of file: no process holds the other end any more. */
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	close(fds[0]);
}

TEST(test_handler_dies_with_its_parent)
{
	dies_with_its_parent(NULL);
	if (geteuid() != 0)
		return;
	dies_with_its_parent("nobody");
}

/* The last: from here on nothing is started. */
TEST(test_drain_ends_it_and_starts_no_more)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/sleep",
		(char *)(uintptr_t) "1004", NULL };
	struct run_facts facts;
	struct run_spec spec;
	struct run *run;

	spec_init(&spec, NULL);
	spec.program.argv.item = (char **)(uintptr_t)argv;
	run = run_start(&spec, &facts);
	assert_non_null(run);
	run_drain();
	run_finish(run, &facts);
	assert_int_equal(facts.end, RUN_DRAINED);

	assert_null(run_start(&spec, &facts));
	assert_int_equal(facts.end, RUN_NOT_STARTED);
}

static int
begin_group(void **state)
{
	(void)state;
	if (run_init() != RC_OK)
		return -1;
	return 0;
}

GROUP(begin_group, NULL)
