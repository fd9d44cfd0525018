/*
 * scheduler: what it does where the system helps less, and at the stop.
 *
 * The kinds of work have tests of their own; that threads sleep is for the
 * system tests.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
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
static struct loop *loop;
static bool may_watch, sees_nothing;
/* Helpers have loops of their own, which watch, too. */
static atomic_int blind = -1; /* the watch that sees nothing */
static atomic_bool asleep;    /* it waits until the database is written */
static bool ended;

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
enum rc __real_loop_watch(
    struct loop *l, struct loop_watch *w, int fd, unsigned events);
enum rc __wrap_loop_watch(
    struct loop *l, struct loop_watch *w, int fd, unsigned events);

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
	if (sees_nothing) {
		blind = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		return blind;
	}
	return may_watch ? __real_store_watch(watched) : -1;
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

enum rc
__wrap_loop_watch(struct loop *l, struct loop_watch *w, int fd, unsigned events)
{
	if (fd == blind && fd != -1)
		asleep = true;
	return __real_loop_watch(l, w, fd, events);
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
	may_watch = true;
	sees_nothing = false;
	asleep = false;
	ended = false;
	blind = -1;
	return loop_open(&loop) == RC_OK ? 0 : -1;
}

static void
serve(void)
{
	loop_round(loop, clock_mono() + 10);
}

static void
note_ended(UNUSED void *arg)
{
	ended = true;
}

static int
teardown_store(void **state)
{
	if (scheduler != NULL) {
		scheduler_halt(scheduler);
		while (!scheduler_ended(scheduler))
			serve();
	}
	scheduler_free(scheduler);
	loop_close(loop);
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
	enum rc rc = scheduler_start(&scheduler, conf, store,
	    &(struct scheduler_owner){ .loop = loop, .ended = note_ended });

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
		serve();
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
	may_watch = false;
	assert_ok(start(MAIL));
	emit();
	wait_delivered(1);
	emit();
	wait_delivered(2);
}

/* As with a sync that takes longer than polling goes on: the commit becomes
 * visible without another write. */
CASE(work_of_this_process_wakes_it_though_it_sees_no_write)
{
	sees_nothing = true;
	assert_ok(start("[server]\nsweep_interval = 1d\n" MAIL));
	while (!asleep)
		serve();
	emit();
	store_wake(store);
	wait_delivered(1);
}

static sem_t reloaded;

static void
reload_comes(UNUSED struct loop_message *m)
{
	reload(MAIL);
	sem_post(&reloaded);
}

/* In a helper. */
static void
reload_to_good(void)
{
	static struct loop_message message = { .come = reload_comes };

	loop_send(loop, &message);
	while (sem_wait(&reloaded) == -1)
		continue;
}

/* The program of the old configuration would fail. */
CASE(what_was_found_before_a_reload_is_begun_after_it)
{
	assert_int_equal(sem_init(&reloaded, 0, 0), 0);
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
		serve();
	emit();
	reload(MAIL);
	assert_int_equal(count_of(EFFECTS), 1);
	assert_int_equal(value_of(NULL, E_ATTEMPTS), 0);
}

/* The owner hears of it, for it may wait for the last item. */
CASE(the_end_of_the_last_item_after_a_halt_is_told)
{
	assert_ok(start("[effect mail]\nprogram = /bin/sleep 0.2\n"));
	emit();
	while (count_effects(EFFECT_PENDING) == 1 &&
	    value_of(NULL, E_ATTEMPTS) == 0)
		serve();
	scheduler_halt(scheduler);
	assert_false(scheduler_ended(scheduler));
	assert_false(ended);
	while (!ended)
		serve();
	assert_true(scheduler_ended(scheduler));
	assert_int_equal(count_effects(EFFECT_DELIVERED), 1);
}

static int
begin_group(UNUSED void **state)
{
	return run_init() == RC_OK ? 0 : -1;
}

GROUP(begin_group, NULL)
