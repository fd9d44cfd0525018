/*
 * lock: the order of locks is asserted in test builds; waits end in time.
 */
#include "config.h"

#include "cases.h"
#include "aborts.h"

#include "clock.h"
#include "lock.h"

#ifdef LOCK_CHECKS
static struct lock first, second;

static int
in_order(UNUSED const void *arg)
{
	lock_take(&first);
	lock_take(&second);
	lock_give(&first);
	lock_give(&second);
	lock_take(&first);
	lock_give(&first);
	return 0;
}

static int
against_the_order(UNUSED const void *arg)
{
	lock_take(&second);
	lock_take(&first);
	return 0;
}

static int
one_twice(UNUSED const void *arg)
{
	lock_take(&first);
	lock_take(&first);
	return 0;
}

static int
wait_with_another(UNUSED const void *arg)
{
	pthread_cond_t cond;

	lock_cond_init(&cond);
	lock_take(&first);
	lock_take(&second);
	lock_wait(&second, &cond, clock_mono());
	return 0;
}

TEST(order_of_locks_is_asserted)
{
	lock_init(&first, LOCK_STORE);
	lock_init(&second, LOCK_COMMITTER);
	assert_false(aborts(in_order, NULL));
	assert_true(aborts(against_the_order, NULL));
	assert_true(aborts(one_twice, NULL));
	assert_true(aborts(wait_with_another, NULL));
}
#endif

TEST(wait_ends_when_time_is_up)
{
	struct lock lock;
	pthread_cond_t cond;
	int64_t until = clock_mono() + 20;

	lock_init(&lock, LOCK_STORE);
	lock_cond_init(&cond);
	lock_take(&lock);
	while (lock_wait(&lock, &cond, until))
		continue;
	assert_true(clock_mono() >= until);
	lock_give(&lock);
	lock_destroy(&lock);
}
