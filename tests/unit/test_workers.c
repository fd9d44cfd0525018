/*
 * Processes that stay, with runs of the loop and of a thread that waits.  The
 * processes run this program itself.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_fixture.h"

#include "conf_fixture.h"
#include "run_wait.h"
#include "workers.h"

#define ROUNDS 300

static struct conf *conf;

/* --- the process --------------------------------------------------------- */

/* Does what the request says: it is small, so it comes at once. */
static void
serve(int fd)
{
	static const char text[] = "\1\6\0\1\0\5\0\0hello\1\3\0\1\0\10\0\0"
				   "\0\0\0\0\0\0\0\0";
	char bytes[4096], flood[1000];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	const char *does = n > 0 ? memmem(bytes, (size_t)n, "DO", 2) : NULL;

	if (does == NULL) {
		close(fd);
		return;
	}
	memset(flood, 'x', sizeof(flood));
	flood[sizeof(flood) - 1] = '\n';
	if (does[2] == 'p')
		(void)!write(2, does + 3, 4);
	for (int i = 0; does[2] == 'f' && i < 400; i++)
		(void)!write(2, flood, sizeof(flood));
	if (does[2] == 'k')
		(void)kill(getpid(), SIGKILL);
	if (does[2] == 'e')
		_exit(3);
	if (does[2] == 's')
		(void)!read(fd, bytes, sizeof(bytes)); /* nothing comes */
	(void)!write(fd, text, sizeof(text) - 1);
	close(fd);
	if (does[2] == 'l') {
		(void)shutdown(0, SHUT_RDWR);
		_exit(0);
	}
}

static __attribute__((constructor)) void
be_a_process(int argc, char **argv)
{
	int fd;

	if (argc != 2 || strcmp(argv[1], "process") != 0)
		return;
	while ((fd = accept(0, NULL, NULL)) != -1)
		serve(fd);
	_exit(0);
}

/* --- the spawner --------------------------------------------------------- */

/* The processes end at their start, before the loop hears of them. */
static atomic_bool ends_at_start;
static atomic_uint starts;

static void
start_process(UNUSED void *arg, struct workers_process *p)
{
	const struct workers_mark mark = { .held = -1, .token = "" };
	const pid_t pid = workers_start(p, &mark);
	siginfo_t info;

	atomic_fetch_add(&starts, 1);
	if (pid == -1 || !atomic_load(&ends_at_start))
		return;
	(void)kill(pid, SIGKILL);
	(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL);
}

static void
forget_process(UNUSED void *arg, UNUSED int64_t lock)
{
}

static bool ended;

static void
note_ended(UNUSED void *arg)
{
	ended = true;
}

/* --- requests ------------------------------------------------------------ */

/* Makes a run of one of the two routes: 0 has one process, 1 has three. */
static void
prepare(struct try *t, int route, const char *what, int64_t timeout)
{
	struct conf_program *program = &conf->routes[route].handler;

	memset(t, 0, sizeof(*t));
	buf_init(&t->errors, 4096);
	snprintf(t->what, sizeof(t->what), "A=DO%s", what);
	t->envp[0] = t->what;
	t->spec.program = *program;
	t->spec.program.timeout = timeout;
	t->spec.envp = t->envp;
	t->spec.body_fd = t->spec.held = -1;
	t->spec.log = &request_log;
	t->spec.errors = &t->errors;
	t->run = run_start_app(&t->spec, program, &t->facts);
	assert_non_null(t->run);
}

static void
begin(struct try *t, int route, const char *what)
{
	prepare(t, route, what, 20000);
	go(t);
}

static void
has_answered(struct try *t, const char *errors)
{
	if (t->facts.end != RUN_EXITED || t->output != 5 ||
	    strcmp(t->errors.len > 0 ? t->errors.data : "", errors) != 0)
		fail_msg("end %d output %zu errors \"%s\" not \"%s\"",
		    (int)t->facts.end, t->output,
		    t->errors.len > 0 ? t->errors.data : "", errors);
	buf_free(&t->errors);
}

/* Asks many times, each time with a line of its own for stderr. */
static void
ask_many(int route)
{
	struct try t;
	char what[16];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(what, sizeof(what), "p%03d\n", i);
		begin(&t, route, what);
		end(&t);
		has_answered(&t, what + 1);
	}
}

TEST(each_request_has_its_own_lines)
{
	ask_many(0);
	ask_many(1);
}

TEST(many_wait_in_one_loop)
{
	struct try tries[50];
	char what[COUNT(tries)][16];

	for (size_t i = 0; i < COUNT(tries); i++) {
		snprintf(what[i], sizeof(what[i]), "p%03d\n", (int)i);
		begin(&tries[i], 1, what[i]);
	}
	for (size_t i = 0; i < COUNT(tries); i++) {
		end(&tries[i]);
		has_answered(&tries[i], what[i] + 1);
	}
}

static atomic_bool has_asked;

/* Asks from another thread, as often. */
static void *
ask_too(UNUSED void *arg)
{
	struct try t;
	char bytes[64], what[16];
	size_t n;

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(what, sizeof(what), "p%03d\n", 999 - i);
		prepare(&t, 0, what, 20000);
		t.run = run_wait_begin(t.run, &t.facts);
		assert_non_null(t.run);
		while ((n = run_wait_read(t.run, bytes, sizeof(bytes))) > 0)
			t.output += n;
		run_wait_finish(t.run, &t.facts);
		has_answered(&t, what + 1);
	}
	atomic_store(&has_asked, true);
	return NULL;
}

TEST(a_thread_that_waits_shares_a_process_with_the_loop)
{
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, ask_too, NULL), 0);
	ask_many(0);
	while (!atomic_load(&has_asked))
		loop_round(loop, clock_mono() + 10);
	assert_int_equal(pthread_join(other, NULL), 0);
}

TEST(a_process_that_prints_a_lot_is_read)
{
	struct try t;

	begin(&t, 0, "f");
	end(&t);
	assert_int_equal(t.facts.end, RUN_EXITED);
	assert_int_equal(t.output, 5);
	buf_free(&t.errors);
}

TEST(the_end_of_one_that_refuses_is_not_the_end_of_the_next)
{
	struct try last, next;
	siginfo_t info;

	begin(&last, 0, "p000\n");
	end(&last);
	has_answered(&last, "000\n");
	begin(&last, 0, "l");
	begin(&next, 0, "p000\n");
	/* The loop hears of the answer and of the end at once. */
	(void)waitid(
	    P_PID, (id_t)run_pid(last.run), &info, WEXITED | WNOWAIT | __WALL);
	end(&last);
	has_answered(&last, "");
	end(&next);
	has_answered(&next, "000\n");
}

TEST(one_that_ends_at_its_start_is_a_failure)
{
	struct try t;

	atomic_store(&ends_at_start, true);
	begin(&t, 0, "e");
	end(&t);
	atomic_store(&starts, 0);
	prepare(&t, 0, "p000\n", 2000);
	go(&t);
	end(&t);
	assert_int_equal(t.facts.end, RUN_NOT_STARTED);
	assert_int_equal(t.facts.error, ECONNREFUSED);
	assert_true(atomic_load(&starts) < 10);
	atomic_store(&ends_at_start, false);
	do {
		loop_round(loop, clock_mono() + 10);
		begin(&t, 0, "p000\n");
		end(&t);
	} while (t.facts.end == RUN_NOT_STARTED);
	has_answered(&t, "000\n");
}

TEST(waiting_ends_at_the_timeout)
{
	struct try busy, late;

	prepare(&busy, 0, "s", 300);
	go(&busy);
	prepare(&late, 0, "p000\n", 100);
	go(&late);
	end(&late);
	assert_int_equal(late.facts.end, RUN_NOT_STARTED);
	assert_int_equal(late.facts.error, ETIMEDOUT);
	end(&busy);
	assert_int_equal(busy.facts.end, RUN_TIMEOUT);
}

static void
no_move(UNUSED void *arg)
{
}

TEST(a_run_that_is_cancelled_gives_its_process_back)
{
	struct try t;

	for (int i = 0; i < 3; i++) {
		prepare(&t, 0, "k", 20000);
		run_begin_in(t.run, runs, no_move, NULL);
		while (!run_is_reached(t.run))
			loop_round(loop, INT64_MAX);
		run_cancel(t.run);
	}
	begin(&t, 0, "p000\n");
	end(&t);
	has_answered(&t, "000\n");
}

TEST(a_reload_keeps_processes)
{
	struct workers_pool *fresh;
	struct try t;

	assert_true(workers_prepare(conf, &fresh));
	workers_set(conf, fresh);
	begin(&t, 1, "p000\n");
	end(&t);
	has_answered(&t, "000\n");
}

static int
open_all(UNUSED void **state)
{
	char self[PATH_MAX], text[2 * PATH_MAX + 512];
	struct workers_pool *fresh;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(text, sizeof(text),
	    "[server]\ndatabase = x\n[defaults]\nprotocol = fastcgi\nhandler = "
	    "'%s' "
	    "process\n[route /a]\nprocesses = 1\n[route /b]\nprocesses = 3\n",
	    self);
	conf = conf_from(text);
	if (open_loop(NULL) != 0 ||
	    workers_open(&(struct workers_owner){ .runs = runs,
		.start = start_process,
		.forget = forget_process }) != RC_OK ||
	    !workers_prepare(conf, &fresh))
		return -1;
	workers_set(conf, fresh);
	return 0;
}

static int
close_all(UNUSED void **state)
{
	workers_stop(note_ended, NULL);
	while (!ended)
		loop_round(loop, INT64_MAX);
	workers_close();
	conf_unref(conf);
	return close_loop(NULL);
}

GROUP(open_all, close_all)
