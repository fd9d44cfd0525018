/*
 * loop: descriptors, times and messages, and the order of their calls.  Each
 * call adds a letter to what has happened.
 */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "clock.h"
#include "loop.h"

static struct loop *loop;
static char happened[100];
static size_t n;

static int
open_loop(UNUSED void **state)
{
	memset(happened, 0, sizeof(happened));
	n = 0;
	return loop_open(&loop);
}

static int
close_loop(UNUSED void **state)
{
	loop_close(loop);
	return 0;
}

AROUND_EACH(open_loop, close_loop)

static void
happens(char c)
{
	assert_true(n < sizeof(happened) - 1);
	happened[n++] = c;
}

/* What has happened since the last call. */
static void
expect(const char *want)
{
	assert_string_equal(happened, want);
	memset(happened, 0, sizeof(happened));
	n = 0;
}

/* A round that does not wait. */
static void
round_now(const char *want)
{
	loop_round(loop, 0);
	expect(want);
}

/* --- times --- */

struct timer {
	struct loop_timer timer; /* first */
	char name;
	int64_t again; /* sets itself to that time, unless 0 */
};

static void
due(struct loop_timer *t)
{
	struct timer *timer = (struct timer *)(void *)t;

	assert_false(t->is_set);
	assert_true(t->at <= loop_now(loop));
	happens(timer->name);
	if (timer->again != 0)
		loop_set(loop, t, timer->again);
}

static int64_t last;
static unsigned called;

static void
due_in_order(struct loop_timer *t)
{
	assert_true(t->at >= last);
	last = t->at;
	called++;
}

/* Many are set, moved and cleared by chance. */
TEST(any_timers_come_in_order)
{
	enum { MANY = 200 };
	static struct loop_timer t[MANY];
	unsigned random = 1, set = 0;

	for (int i = 0; i < MANY; i++)
		t[i].due = due_in_order;
	for (int i = 0; i < 20 * MANY; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 30 == 0)
			loop_clear(loop, &t[(random >> 8) % MANY]);
		else
			loop_set(loop, &t[(random >> 8) % MANY],
			    1 + (random >> 16) % 1000);
	}
	for (int i = 0; i < MANY; i++)
		set += t[i].is_set;
	assert_in_range(set, MANY / 4, MANY - 1);
	loop_round(loop, 0);
	assert_int_equal(called, set);
}

TEST(a_timer_that_sets_itself_comes_once_a_round)
{
	struct timer t = { { .due = due }, 't', 1 };

	loop_set(loop, &t.timer, 1);
	round_now("t");
	t.again = 0;
	loop_round(loop, clock_mono() + 10000);
	expect("t");
}

TEST(a_round_waits_for_the_first_time)
{
	struct timer t = { { .due = due }, 't', 0 };
	const int64_t began = clock_mono();

	loop_set(loop, &t.timer, began + 3600 * 1000);
	loop_round(loop, began + 20);
	expect("");
	assert_true(clock_mono() >= began + 20);
	loop_set(loop, &t.timer, began + 50);
	loop_round(loop, INT64_MAX);
	expect("t");
	assert_true(clock_mono() >= began + 50);
}

/* --- messages --- */

struct message {
	struct loop_message message; /* first */
	char name;
	bool again;
};

static void
come(struct loop_message *m)
{
	struct message *message = (struct message *)(void *)m;

	happens(message->name);
	if (message->again)
		loop_send(loop, m);
	message->again = false;
}

TEST(messages_come_in_order_and_new_ones_in_the_next_round)
{
	struct message a = { { .come = come }, 'a', true };
	struct message b = { { .come = come }, 'b', false };

	loop_send(loop, &a.message);
	loop_send(loop, &b.message);
	loop_round(loop, INT64_MAX);
	expect("ab");
	loop_round(loop, INT64_MAX);
	expect("a");
	round_now("");
}

enum { SENDERS = 4, SENT = 5000 };

struct numbered {
	struct loop_message message; /* first */
	int sender, number;
};
static struct numbered numbered[SENDERS][SENT];
static int came[SENDERS];

static void
numbered_came(struct loop_message *m)
{
	const struct numbered *x = (const struct numbered *)(void *)m;
	int all = 0;

	assert_int_equal(x->number, came[x->sender]++);
	for (int i = 0; i < SENDERS; i++)
		all += came[i];
	if (all == SENDERS * SENT)
		loop_end(loop);
}

/* Now and then the loop sleeps. */
static void *
send_many(void *arg)
{
	const int me = *(int *)arg;

	for (int i = 0; i < SENT; i++) {
		numbered[me][i] =
		    (struct numbered){ { .come = numbered_came }, me, i };
		loop_send(loop, &numbered[me][i].message);
		if (i % 500 == 0)
			(void)poll(NULL, 0, 1);
	}
	return NULL;
}

TEST(messages_of_many_threads_all_come_in_the_order_of_each)
{
	pthread_t thread[SENDERS];
	int who[SENDERS];

	for (int i = 0; i < SENDERS; i++) {
		who[i] = i;
		thread[i] = start_thread(send_many, &who[i]);
	}
	loop_run(loop);
	for (int i = 0; i < SENDERS; i++)
		end_thread(thread[i]);
}

enum { BRIEF = 2000 };

static struct loop *brief;
static sem_t opened;

static void
brief_came(UNUSED struct loop_message *m)
{
	loop_end(brief);
}

static void *
send_to_brief_loops(UNUSED void *arg)
{
	static struct loop_message m = { .come = brief_came };

	for (int i = 0; i < BRIEF; i++) {
		while (sem_wait(&opened) == -1)
			continue;
		loop_send(brief, &m);
	}
	return NULL;
}

/* The loop is gone as soon as the message has come. */
TEST(a_loop_may_end_while_its_sender_is_not_done)
{
	pthread_t thread;

	assert_int_equal(sem_init(&opened, 0, 0), 0);
	thread = start_thread(send_to_brief_loops, NULL);
	for (int i = 0; i < BRIEF; i++) {
		assert_ok(loop_open(&brief));
		sem_post(&opened);
		loop_run(brief);
		loop_close(brief);
	}
	end_thread(thread);
}

/* --- descriptors --- */

struct watched {
	struct loop_watch watch; /* first */
	int pipe[2];
	struct watched *ends; /* the call ends that watch, too */
};

static void
ready(struct loop_watch *w, unsigned events)
{
	struct watched *x = (struct watched *)(void *)w;
	char c;

	if ((events & EPOLLIN) != 0) {
		assert_int_equal(read(x->pipe[0], &c, 1), 1);
		happens(c);
	}
	if ((events & EPOLLOUT) != 0)
		happens('W');
	if ((events & EPOLLHUP) != 0)
		happens('H');
	if (x->ends != NULL)
		loop_unwatch(loop, &x->ends->watch);
}

static void
open_pipe(struct watched *x)
{
	*x = (struct watched){ .watch = { .ready = ready, .fd = -1 } };
	assert_int_equal(pipe2(x->pipe, O_CLOEXEC | O_NONBLOCK), 0);
}

static void
put(const struct watched *x, const char *text)
{
	assert_int_equal(write(x->pipe[1], text, strlen(text)), strlen(text));
}

static void
close_pipe(struct watched *x)
{
	loop_unwatch(loop, &x->watch);
	close(x->pipe[0]);
	close(x->pipe[1]);
}

TEST(a_descriptor_is_watched_until_that_ends)
{
	struct watched x;

	open_pipe(&x);
	assert_ok(loop_watch(loop, &x.watch, x.pipe[0], EPOLLIN));
	round_now("");
	put(&x, "ab");
	round_now("a");
	assert_ok(loop_watch(loop, &x.watch, x.pipe[0], 0));
	round_now("");
	assert_ok(loop_watch(loop, &x.watch, x.pipe[0], EPOLLIN));
	round_now("b");
	put(&x, "c");
	loop_unwatch(loop, &x.watch);
	loop_unwatch(loop, &x.watch);
	round_now("");
	assert_ok(loop_watch(loop, &x.watch, x.pipe[0], EPOLLIN | EPOLLET));
	round_now("c");
	close(x.pipe[1]);
	round_now("H");
	loop_unwatch(loop, &x.watch);
	close(x.pipe[0]);
}

/* Both are ready in the same round; the first call ends the other watch. */
TEST(a_watch_that_ended_gets_no_call)
{
	struct watched a, b;

	open_pipe(&a);
	open_pipe(&b);
	a.ends = &b;
	b.ends = &a;
	for (int i = 0; i < 2; i++) {
		assert_ok(loop_watch(loop, &a.watch, a.pipe[0], EPOLLIN));
		assert_ok(loop_watch(loop, &b.watch, b.pipe[0], EPOLLIN));
		put(&a, "x");
		put(&b, "x");
		round_now("x");
		assert_true((a.watch.fd == -1) != (b.watch.fd == -1));
	}
	close_pipe(&a);
	close_pipe(&b);
}

TEST(what_cannot_be_watched_is_not)
{
	struct loop_watch w = { .ready = ready, .fd = -1 };
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(loop_watch(loop, &w, fileno(file), EPOLLIN), RC_IO);
	assert_int_equal(w.fd, -1);
	fclose(file);
}

/* Descriptors, then messages, then times. */
TEST(a_round_has_an_order)
{
	struct message m = { { .come = come }, 'm', false };
	struct timer t = { { .due = due }, 't', 0 };
	struct watched x;

	open_pipe(&x);
	assert_ok(loop_watch(loop, &x.watch, x.pipe[0], EPOLLIN));
	loop_set(loop, &t.timer, 1);
	loop_send(loop, &m.message);
	put(&x, "d");
	round_now("dmt");
	close_pipe(&x);
}

/* --- calls that wait --- */

/* As in loop.c. */
#if defined(LOCK_CHECKS) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
static void
wait_ms(struct loop_timer *t)
{
	const int ms = (int)((struct timer *)(void *)t)->again;

	(void)poll(NULL, 0, ms);
	if (((struct timer *)(void *)t)->name != '\0')
		loop_doing("another thing");
	(void)poll(NULL, 0, ms);
}

static int
call_timer(const void *arg)
{
	struct timer t = *(const struct timer *)arg;

	t.timer.due = wait_ms;
	loop_set(loop, &t.timer, 1);
	loop_round(loop, 0);
	return 0;
}

/* Whether that is logged. */
static bool
is_told(const struct timer *t)
{
	char text[1024] = "";
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		_exit(call_timer(t));
	}
	close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) >= 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return strstr(text, "event=loop-waited doing=") != NULL;
}

TEST(a_call_that_waits_is_logged_by_a_test_build)
{
	/* 50 ms, or more on a busy machine */
	static const struct timer twice_500 = { .again = 500 },
				  parts = { .again = 40, .name = 'x' },
				  twice_5 = { .again = 5 };

	/* under a tool that slows it, such as valgrind, nothing is */
	assert_int_equal(is_told(&twice_500), getenv("LD_PRELOAD") == NULL);
	assert_false(is_told(&parts));
	assert_false(is_told(&twice_5));
}
#endif
