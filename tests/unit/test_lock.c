/*
 * lock: the order of locks is asserted in test builds; waits end in time.
 */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "clock.h"
#include "lock.h"

#ifdef LOCK_CHECKS
/* The signal that ends a child that runs what, or 0. */
static int
signal_of(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(STDERR_FILENO); /* what assert() says */
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static struct lock first, second;

static void
in_order(void)
{
	lock_take(&first);
	lock_take(&second);
	lock_give(&first);
	lock_give(&second);
	lock_take(&first);
	lock_give(&first);
}

static void
against_the_order(void)
{
	lock_take(&second);
	lock_take(&first);
}

static void
one_twice(void)
{
	lock_take(&first);
	lock_take(&first);
}

static void
wait_with_another(void)
{
	pthread_cond_t cond;

	lock_cond_init(&cond);
	lock_take(&first);
	lock_take(&second);
	lock_wait(&second, &cond, clock_mono());
}

TEST(order_of_locks_is_asserted)
{
	lock_init(&first, LOCK_STORE);
	lock_init(&second, LOCK_COMMITTER);
	assert_int_equal(signal_of(in_order), 0);
	assert_int_equal(signal_of(against_the_order), SIGABRT);
	assert_int_equal(signal_of(one_twice), SIGABRT);
	assert_int_equal(signal_of(wait_with_another), SIGABRT);
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
