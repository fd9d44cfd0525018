/*
 * scheduler: what it does where the system helps less, and at the stop.
 *
 * The kinds of work have tests of their own; that threads sleep is for the
 * system tests.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "conf_fixture.h"
#include "outbox.h"
#include "run.h"
#include "scheduler.h"
#include "store_fixture.h"
#include "thread.h"

static struct scheduler *scheduler;
static atomic_int may_start; /* threads */
static atomic_int refused;
static atomic_bool may_watch, sees_nothing;
static atomic_int
    asleep; /* times a thread slept until the database is written */

int __real_thread_start(pthread_t *thread, const char *name, size_t stack,
    void *(*thread_main)(void *arg), void *arg);
int __wrap_thread_start(pthread_t *thread, const char *name, size_t stack,
    void *(*thread_main)(void *arg), void *arg);
int __real_store_watch(const struct store *watched);
int __wrap_store_watch(const struct store *watched);
enum rc __real_store_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at);
enum rc __wrap_store_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int
__wrap_thread_start(pthread_t *thread, const char *name, size_t stack,
    void *(*thread_main)(void *arg), void *arg)
{
	if (strcmp(name, "scheduler") == 0 &&
	    atomic_fetch_sub(&may_start, 1) <= 0) {
		atomic_fetch_add(&refused, 1);
		return EAGAIN;
	}
	return __real_thread_start(thread, name, stack, thread_main, arg);
}

int
__wrap_store_watch(const struct store *watched)
{
	if (atomic_load(&sees_nothing))
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return atomic_load(&may_watch) ? __real_store_watch(watched) : -1;
}

/* Runs at the next effect that is found, before it is claimed. */
static void (*_Atomic on_found)(void);

enum rc
__wrap_store_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at)
{
	enum rc rc = __real_store_effect_next(s, topic, effect, at);
	void (*hook)(void) = NULL;

	if (rc == RC_OK)
		hook = atomic_exchange(&on_found, NULL);
	if (hook != NULL)
		hook();
	return rc;
}

int
__wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (n == 2)
		atomic_fetch_add(&asleep, 1);
	return __real_poll(fds, n, timeout);
}

static int
setup_store(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	store = open_store();
	scheduler = NULL;
	atomic_store(&may_start, 1000);
	atomic_store(&refused, 0);
	atomic_store(&may_watch, true);
	atomic_store(&sees_nothing, false);
	atomic_store(&asleep, 0);
	return 0;
}

static int
teardown_store(void **state)
{
	scheduler_stop(scheduler);
	return teardown(state);
}

/* --- the words ---------------------------------------------------------- */

/* The store gets its topics. */
static struct conf *
configure(const char *text)
{
	struct conf *conf = conf_from(text);

	assert_ok(outbox_topics(store, NULL, conf));
	return conf;
}

static enum rc
start(const char *text)
{
	struct conf *conf = configure(text);
	enum rc rc = scheduler_start(&scheduler, conf, store);

	conf_unref(conf);
	return rc;
}

static void
reload(const char *text)
{
	struct conf *conf = configure(text);

	scheduler_reload(scheduler, conf);
	conf_unref(conf);
}

/* The handler of a key of its own emits one effect.  No write of this process
 * makes news of it. */
static void
emit(void)
{
	static int keys;
	struct store_lease lease = reserve(textf("k%d", keys++));

	assert_true(try_emit(&lease, "mail", "x", 1));
}

static void
wait_delivered(int64_t n)
{
	while (count_effects(EFFECT_DELIVERED) != n)
		(void)poll(NULL, 0, 10);
}

#define MAIL "[effect mail]\nprogram = /bin/true\n"

#define CASE(name) TEST_WITH(name, setup_store, teardown_store)

/* --- the cases ---------------------------------------------------------- */

CASE(without_a_first_thread_it_does_not_start)
{
	atomic_store(&may_start, 0);
	assert_int_equal(start(MAIL), RC_NOMEM);
	assert_null(scheduler);
}

CASE(without_another_thread_one_does_all_work)
{
	atomic_store(&may_start, 1);
	assert_ok(start(MAIL));
	for (int i = 0; i < 3; i++)
		emit();
	wait_delivered(3);
	assert_true(atomic_load(&refused) >= 1);
}

CASE(without_a_watch_it_polls)
{
	atomic_store(&may_watch, false);
	assert_ok(start(MAIL));
	emit();
	wait_delivered(1);
	emit();
	wait_delivered(2);
}

/* As with a sync that takes longer than the lookout goes on polling: the commit
 * becomes visible without another write. */
CASE(work_of_this_process_wakes_it_though_it_sees_no_write)
{
	atomic_store(&sees_nothing, true);
	assert_ok(start("[server]\nsweep_interval = 1d\n" MAIL));
	while (atomic_load(&asleep) == 0)
		(void)poll(NULL, 0, 10);
	emit();
	store_wake(store);
	wait_delivered(1);
}

static void
reload_to_good(void)
{
	reload(MAIL);
}

/* The program of the old configuration would fail. */
CASE(what_was_found_before_a_reload_is_begun_after_it)
{
	assert_ok(start("[effect mail]\nprogram = /bin/false\n"));
	atomic_store(&on_found, reload_to_good);
	emit();
	wait_delivered(1);
	assert_null(atomic_load(&on_found));
	assert_int_equal(value_of(NULL, E_ATTEMPTS), 1);
}

CASE(once_halted_it_begins_nothing_and_ends)
{
	assert_ok(start(MAIL));
	assert_false(scheduler_ended(scheduler));
	scheduler_halt(scheduler);
	while (!scheduler_ended(scheduler))
		(void)poll(NULL, 0, 10);
	emit();
	reload(MAIL);
	assert_int_equal(count_of(EFFECTS), 1);
	assert_int_equal(value_of(NULL, E_ATTEMPTS), 0);
}

CASE(nothing_is_stopped_twice)
{
	assert_true(scheduler_ended(NULL));
	scheduler_halt(NULL);
	scheduler_stop(NULL);
}

static int
begin_group(UNUSED void **state)
{
	sigset_t set;

	/* The last thread of a scheduler sends it to this process. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (run_init() != RC_OK)
		return -1;
	return 0;
}

GROUP(begin_group, NULL)
