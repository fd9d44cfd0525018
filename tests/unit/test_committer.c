/*
 * The callers that the committer waits for (committer_disk.c), and the writes
 * that it takes while another process has the write lock (committer_queue.c).
 * Syncs and locks take an hour here, so a wait that should not be does not end.
 */
#include "config.h"

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

/* Two requests wait; all of it lasts for hours. */
static int
setup_lock(void **state)
{
	setup(state);
	c.busy_timeout = hour;
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
		thread = start_thread(other, NULL);
	committer_gather(&c);
	lock_give(&c.lock);
	if (other != NULL)
		end_thread(thread);
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

LOCK(a_lock_that_was_missed_refuses_nothing_for_busy_timeout)
{
	const int64_t since[] = { 0, minute, hour - minute };

	for (size_t i = 0; i < COUNT(since); i++) {
		c.locked_at = clock_mono() - since[i];
		assert_ok(committer_refusal(&c, &w[2]));
		assert_int_equal(committer_patience(&c, &w[2]), hour);
	}
}

LOCK(a_lock_not_had_for_busy_timeout_is_hardly_waited_for)
{
	c.locked_at = clock_mono() - hour;
	assert_ok(committer_refusal(&c, &w[2]));
	assert_true(committer_patience(&c, &w[2]) < minute);
}

/* --- callers whose time is up, for which there is no thread --------------- */

/* One that waits. */
static enum rc
late_caller(void)
{
	return committer_do(&c, &w[2]);
}

/* One of a loop. */
static enum rc
late_call(void)
{
	int64_t until;
	enum rc rc;

	assert_ok(committer_submit(&c, &w[2], (struct loop *)&c, &until));
	while (clock_mono() < until)
		continue;
	assert_false(committer_late(&c, &w[2], &until, &rc));
	return rc;
}

static enum rc (*const callers[])(void) = { late_caller, late_call };

/* Others had the lock at first_missed.  Whether it is waited for no more. */
static bool
gives_up(int64_t had_at, int64_t first_missed, enum rc (*caller)(void))
{
	c.busy_timeout = 10;
	c.had_at = had_at;
	c.locked_at = first_missed;
	assert_int_equal(caller(), RC_BUSY);
	assert_int_equal(c.queue.n, 2);
	return committer_gave_up(&c);
}

LOCK(time_that_is_up_says_nothing_of_a_lock_that_was_had)
{
	const int64_t later = clock_mono() + hour;

	for (size_t i = 0; i < COUNT(callers); i++) {
		assert_false(gives_up(later, later, callers[i]));
		assert_ok(committer_refusal(&c, &w[0]));
	}
}

LOCK(time_that_is_up_without_the_lock_spares_others_theirs)
{
	const int64_t now = clock_mono();

	for (size_t i = 0; i < COUNT(callers); i++)
		assert_true(gives_up(now - hour, now + minute, callers[i]));
}

static void
left(struct write *write)
{
	(void)write;
}

/* The thread has begun it, or ended it, and has not told of it yet. */
LOCK(what_has_begun_is_not_late_and_what_has_ended_is_told)
{
	static const struct {
		enum write_state state;
		bool finishes, waits;
	} cases[] = { { WRITE_BEGUN, false, true }, { WRITE_DONE, false, true },
		{ WRITE_BEGUN, true, false }, { WRITE_DONE, true, true } };

	c.busy_timeout = 0;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t until;
		enum rc rc = RC_OK;

		w[2] = (struct write){
			.flags = cases[i].finishes ? WRITE_FINISHES : 0,
			.left = cases[i].finishes ? left : NULL,
		};
		assert_ok(
		    committer_submit(&c, &w[2], (struct loop *)&c, &until));
		assert_true(committer_list_remove(&c.queue, &w[2]));
		w[2].state = cases[i].state;
		assert_int_equal(
		    committer_late(&c, &w[2], &until, &rc), cases[i].waits);
		assert_int_equal(rc, cases[i].waits ? RC_OK : RC_PENDING);
	}
	assert_int_equal(c.health.overdue, 1);
}

static int
begin_group(UNUSED void **state)
{
	alarm(300);
	return 0;
}

GROUP(begin_group, NULL)
