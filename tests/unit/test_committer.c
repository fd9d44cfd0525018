/*
 * The callers that the committer waits for (committer_disk.c), and the writes
 * that it takes while another process has the write lock (committer_queue.c).
 * Syncs and locks take an hour here, so a wait that should not be does not end.
 */
#include "config.h"

#include <pthread.h>
#include <unistd.h>

#include "cases.h"

#include "clock.h"
#include "committer_impl.h"

#define HOUR ((int64_t)3600 * 1000000)

static struct committer c;
static struct write w[3];

static int
setup(UNUSED void **state)
{
	memset(&c, 0, sizeof(c));
	memset(w, 0, sizeof(w));
	committer_list_init(&c.queue);
	lock_init(&c.lock, LOCK_COMMITTER);
	lock_cond_init(&c.work);
	committer_list_add(&c.queue, &w[0]);
	return 0;
}

static int
teardown(UNUSED void **state)
{
	pthread_cond_destroy(&c.work);
	lock_destroy(&c.lock);
	return 0;
}

static const int64_t hour = (int64_t)3600 * 1000;
static const int64_t minute = (int64_t)60 * 1000;

/* Two requests wait, as many as may; all of it lasts for hours. */
static int
setup_lock(void **state)
{
	setup(state);
	c.busy_timeout = hour;
	c.max_waiting = 2;
	for (size_t i = 0; i < 3; i++)
		w[i].flags = WRITE_NEW | WRITE_REFUSABLE;
	committer_list_add(&c.queue, &w[1]);
	return 0;
}

/* Gathers, while another thread does what it is given; how many are queued. */
static unsigned
gather(void *(*other)(void *))
{
	pthread_t thread;

	lock_take(&c.lock);
	if (other != NULL)
		assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
	committer_gather(&c);
	lock_give(&c.lock);
	if (other != NULL)
		pthread_join(thread, NULL);
	return c.queue.n;
}

static void
syncs_took(int64_t before, int64_t last)
{
	committer_took(&c, before);
	committer_took(&c, last);
}

/* The lock is free only while a thread waits for it. */
static void *
two_come(void *arg)
{
	(void)arg;
	for (int i = 1; i < 3; i++) {
		lock_take(&c.lock);
		committer_list_add(&c.queue, &w[i]);
		lock_give(&c.lock);
		pthread_cond_signal(&c.work);
	}
	return NULL;
}

static void *
close_it(void *arg)
{
	(void)arg;
	lock_take(&c.lock);
	c.closing = true;
	lock_give(&c.lock);
	pthread_cond_signal(&c.work);
	return NULL;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(where_syncs_are_slow_it_waits_until_those_it_told_are_back)
{
	c.expected = 3;
	syncs_took(HOUR, HOUR);
	assert_int_equal(gather(two_come), 3);
}

CASE(a_lone_caller_waits_for_no_other)
{
	c.expected = 1;
	syncs_took(HOUR, HOUR);
	assert_int_equal(gather(NULL), 1);
}

CASE(one_slow_sync_is_not_a_slow_disk)
{
	c.expected = 2;
	syncs_took(300, HOUR);
	assert_int_equal(gather(NULL), 1);
	syncs_took(HOUR, 300);
	assert_int_equal(gather(NULL), 1);
}

CASE(who_does_not_come_back_is_not_waited_for_longer_than_a_sync)
{
	c.expected = 3;
	syncs_took(4000, 4000);
	assert_int_equal(gather(NULL), 1);
}

CASE(closing_ends_the_wait)
{
	c.expected = 2;
	syncs_took(HOUR, HOUR);
	assert_int_equal(gather(close_it), 1);
}

#define LOCK(name) TEST_WITH(name, setup_lock, teardown)

LOCK(a_lock_that_was_missed_just_now_refuses_nothing)
{
	c.locked_at = c.still_at = clock_mono();
	assert_false(committer_is_held(&c));
	assert_ok(committer_refusal(&c, &w[2]));
	assert_int_equal(committer_patience(&c, &w[2]), hour);
}

LOCK(a_lock_that_others_take_by_turns_refuses_nothing)
{
	c.locked_at = clock_mono() - hour + minute;
	c.still_at = clock_mono();
	assert_ok(committer_refusal(&c, &w[2]));
	assert_int_equal(committer_patience(&c, &w[2]), hour);
}

LOCK(a_lock_that_one_holds_refuses_more_requests_than_may_wait)
{
	c.locked_at = c.still_at = clock_mono() - minute;
	assert_int_equal(committer_refusal(&c, &w[2]), RC_BUSY);
	assert_int_equal(committer_patience(&c, &w[2]), hour);
	committer_list_take(&c.queue);
	assert_ok(committer_refusal(&c, &w[2]));
}

LOCK(a_lock_not_had_for_busy_timeout_is_hardly_waited_for)
{
	c.locked_at = clock_mono() - hour;
	c.still_at = clock_mono();
	assert_int_equal(committer_refusal(&c, &w[2]), RC_BUSY);
	assert_true(committer_patience(&c, &w[2]) < minute);
}

/* The time is up of a caller for which there is no thread; others had the lock
 * at first_missed. */
static void
time_is_up(int64_t had_at, int64_t first_missed)
{
	c.busy_timeout = 10;
	c.had_at = had_at;
	c.locked_at = c.still_at = first_missed;
	assert_int_equal(committer_do(&c, &w[2]), RC_BUSY);
	assert_int_equal(c.queue.n, 2);
}

LOCK(time_that_is_up_says_nothing_of_a_lock_that_was_had)
{
	time_is_up(clock_mono() + hour, clock_mono() + hour);
	assert_false(committer_gave_up(&c));
	assert_ok(committer_refusal(&c, &w[0]));
}

LOCK(time_that_is_up_without_the_lock_spares_others_theirs)
{
	time_is_up(clock_mono() - hour, clock_mono() + minute);
	assert_true(committer_gave_up(&c));
}

static int
begin_group(UNUSED void **state)
{
	alarm(300);
	return 0;
}

GROUP(begin_group, NULL)
