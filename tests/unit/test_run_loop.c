/*
 * Runs of one loop: real programs, and an application of this process.
 */
#include "config.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "run_fixture.h"

#include "limit.h"
#include "run_impl.h"

#define FAR 60000 /* ms: a deadline that no test reaches */

static char *const no_env[] = { NULL };

static void
prepare(struct try *t, const char *program, const char *script)
{
	memset(t, 0, sizeof(*t));
	t->argv[0] = (char *)(uintptr_t)program;
	t->argv[1] = (char *)(uintptr_t) "-c";
	t->argv[2] = (char *)(uintptr_t)script;
	t->spec.program.argv.item = t->argv;
	t->spec.program.argv.n = script != NULL ? 3 : 1;
	t->spec.program.umask = -1;
	t->spec.program.timeout = FAR;
	t->spec.program.kill_after = FAR;
	t->spec.program.max_output = UINT64_MAX;
	t->spec.envp = no_env;
	t->spec.body_fd = t->spec.held = -1;
	t->spec.log = &request_log;
}

static void
begin(struct try *t)
{
	t->run = t->argv[2] != NULL
	    ? run_start(&t->spec, &t->facts)
	    : run_start_app(&t->spec, &t->spec.program, &t->facts);
	go(t);
}

static void
serve_for(int64_t ms)
{
	const int64_t until = clock_mono() + ms;

	while (clock_mono() < until)
		loop_round(loop, until);
}

TEST(one_that_ends_while_another_is_not_watched)
{
	struct try endless, short_one;

	prepare(&endless, "/bin/sh", "exec cat /dev/zero");
	endless.spec.program.timeout = 400;
	begin(&endless);
	prepare(&short_one, "/bin/sh", "echo x >&2; echo y");
	begin(&short_one);
	end(&short_one);
	assert_false(endless.finished);
	end(&endless);
	assert_int_equal(endless.facts.end, RUN_TIMEOUT);
}

TEST(a_run_whose_output_is_not_taken_neither_spins_nor_times_out)
{
	struct try t;

	prepare(&t, "/bin/sh", "head -c 300000 /dev/zero; exit 7");
	t.spec.streaming = true;
	t.spec.program.timeout = 100;
	t.paused = true;
	begin(&t);
	serve_for(600);
	assert_in_range(t.moves, 1, 10);
	t.paused = false;
	moved(&t);
	end(&t);
	assert_int_equal(t.facts.end, RUN_EXITED);
	assert_int_equal(t.facts.exit_status, 7);
	assert_int_equal(t.output, 300000);
}

TEST(its_timeout_counts_from_what_was_taken_last)
{
	struct try t;

	prepare(&t, "/bin/sh", "for i in 1 2 3 4; do sleep 0.2; echo; done");
	t.spec.streaming = true;
	t.spec.program.timeout = 500;
	begin(&t);
	end(&t);
	assert_int_equal(t.facts.end, RUN_EXITED);
	prepare(&t, "/bin/sh", "echo; exec sleep 1005");
	t.spec.streaming = true;
	t.spec.program.timeout = 100;
	begin(&t);
	end(&t);
	assert_int_equal(t.facts.end, RUN_TIMEOUT);
	assert_int_equal(t.output, 1);
}

/* A line costs much more than its bytes: what one that has ended has left in
 * its pipe is logged in a row. */
TEST(stderr_has_little_room)
{
	struct try t;

	prepare(&t, "/bin/sh", "yes | head -c 60000 >&2");
	begin(&t);
	assert_in_range(
	    fcntl(t.run->err, F_GETPIPE_SZ), LIMIT_STDERR_LINE, 16 * 1024);
	end(&t);
	assert_int_equal(t.facts.end, RUN_EXITED);
}

/* --- an application ------------------------------------------------------ */

/* Takes connections: reads some of each, and answers. */
static void *
answer(void *arg)
{
	static const char text[] = "\1\6\0\1\0\5\0\0hello\1\3\0\1\0\10\0\0"
				   "\0\0\0\11\0\0\0\0";
	const int *listener = arg;
	char bytes[4096];
	int fd;

	while ((fd = accept(*listener, NULL, NULL)) != -1) {
		assert_true(read(fd, bytes, sizeof(bytes)) > 0);
		assert_int_equal(
		    write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
		close(fd);
	}
	return NULL;
}

/* Runs it as a request to that address. */
static void
ask(struct try *t, const char *address)
{
	prepare(t, address, NULL);
	begin(t);
	end(t);
}

static void
answers(const char *address)
{
	struct try t;

	ask(&t, address);
	assert_int_equal(t.facts.end, RUN_EXITED);
	assert_int_equal(t.facts.exit_status, 9);
	assert_string_equal(t.first, "hello");
}

/* The whole answer is there, and nobody asks for its end in time. */
static void
answers_before_its_timeout(const char *address)
{
	struct try t;

	prepare(&t, address, NULL);
	t.spec.program.timeout = 100;
	t.pauses = true;
	begin(&t);
	serve_for(400);
	assert_true(t.paused);
	t.pauses = t.paused = false;
	moved(&t);
	assert_true(t.finished);
	assert_int_equal(t.facts.end, RUN_EXITED);
	assert_int_equal(t.facts.exit_status, 9);
	assert_string_equal(t.first, "hello");
}

static void
does_not_answer(const char *address)
{
	struct try t;

	ask(&t, address);
	assert_int_equal(t.facts.end, RUN_NOT_STARTED);
	assert_int_equal(t.facts.error, ECONNREFUSED);
}

TEST(an_application_at_a_port_is_asked)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char address[64];
	pthread_t thread;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(
	    getsockname(listener, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, &listener), 0);
	snprintf(
	    address, sizeof(address), "tcp:127.0.0.1:%d", ntohs(at.sin_port));
	answers(address);
	snprintf(
	    address, sizeof(address), "tcp:localhost:%d", ntohs(at.sin_port));
	answers(address);
	answers_before_its_timeout(address);
	shutdown(listener, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(listener);
	does_not_answer(address);
}

TEST(an_application_that_is_not_there)
{
	does_not_answer("unix:/nonexistent/socket");
	does_not_answer("tcp:nosuchhost.invalid:1");
}

TEST(a_queue_that_stays_full_is_tried_until_the_timeout)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/test_run_loop.XXXXXX", address[128];
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct try t[4];

	assert_non_null(mkdtemp(folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", folder);
	snprintf(address, sizeof(address), "unix:%s", at.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (size_t i = 0; i < COUNT(t); i++) {
		prepare(&t[i], address, NULL);
		t[i].spec.program.timeout = 300;
		begin(&t[i]);
	}
	for (size_t i = 0; i < COUNT(t); i++)
		end(&t[i]);
	assert_int_equal(t[0].facts.end, RUN_TIMEOUT);
	assert_int_equal(t[3].facts.end, RUN_NOT_STARTED);
	unlink(at.sun_path);
	rmdir(folder);
	close(listener);
}

/* An application that reads as fast as it is sent to. */
static bool takes_all;
static size_t sends, sent;

ssize_t
send(int fd, const void *data, size_t n, int flags)
{
	if (!takes_all)
		return syscall(SYS_sendto, fd, data, n, flags, NULL, 0);
	sends++;
	sent += n;
	return (ssize_t)n;
}

TEST(an_application_that_takes_all_at_once_keeps_no_others_waiting)
{
	static const char body[8 << 20];
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/test_run_loop.XXXXXX", address[128];
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct try t;

	assert_non_null(mkdtemp(folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", folder);
	snprintf(address, sizeof(address), "unix:%s", at.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	prepare(&t, address, NULL);
	t.spec.body = body;
	t.spec.body_len = sizeof(body);
	takes_all = true;
	begin(&t);
	assert_in_range(sends, 1, 16);
	while (sent < sizeof(body)) {
		sends = 0;
		loop_round(loop, INT64_MAX);
		assert_in_range(sends, 1, 16);
	}
	takes_all = false;
	close(listener);
	end(&t);
	assert_int_equal(t.facts.end, RUN_CUT);
	unlink(at.sun_path);
	rmdir(folder);
}

/* The last: from here on nothing is started. */
TEST(drain_ends_all_runs_of_the_loop)
{
	struct try tries[5];

	for (size_t i = 0; i < COUNT(tries); i++) {
		prepare(&tries[i], "/bin/sh", "exec sleep 1007");
		begin(&tries[i]);
	}
	run_drain();
	for (size_t i = 0; i < COUNT(tries); i++) {
		end(&tries[i]);
		assert_int_equal(tries[i].facts.end, RUN_DRAINED);
	}
	assert_null(run_start(&tries[0].spec, &tries[0].facts));
	assert_int_equal(tries[0].facts.end, RUN_NOT_STARTED);
	does_not_answer("tcp:127.0.0.1:1");
}

GROUP(open_loop, close_loop)
