/*
 * Locks that know their place in the order.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lock.h"

struct lock lock_notes = { PTHREAD_MUTEX_INITIALIZER, LOCK_NOTES };

static void
lock_must(int error)
{
	if (error != 0)
		abort();
}

#ifdef LOCK_CHECKS
/* The ranks that this thread holds, one bit each. */
static _Thread_local unsigned held;

static void
note_take(const struct lock *lock)
{
	/* A held lock of this rank or of a later one means a wrong order. */
	assert(held >> lock->rank == 0);
	held |= 1U << lock->rank;
}

static void
note_give(const struct lock *lock)
{
	assert((held & 1U << lock->rank) != 0);
	held &= ~(1U << lock->rank);
}
#else
#define note_take(lock) ((void)(lock))
#define note_give(lock) ((void)(lock))
#endif

void
lock_init(struct lock *lock, enum lock_rank rank)
{
	lock_must(pthread_mutex_init(&lock->mutex, NULL));
	lock->rank = rank;
}

void
lock_destroy(struct lock *lock)
{
	lock_must(pthread_mutex_destroy(&lock->mutex));
}

void
lock_take(struct lock *lock)
{
	note_take(lock);
	lock_must(pthread_mutex_lock(&lock->mutex));
}

void
lock_give(struct lock *lock)
{
	note_give(lock);
	lock_must(pthread_mutex_unlock(&lock->mutex));
}

void
lock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	lock_must(pthread_condattr_init(&attr));
	lock_must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	lock_must(pthread_cond_init(cond, &attr));
	lock_must(pthread_condattr_destroy(&attr));
}

bool
lock_wait(struct lock *lock, pthread_cond_t *cond, int64_t until)
{
	return lock_wait_us(
	    lock, cond, until != LOCK_FOREVER ? until * 1000 : until);
}

bool
lock_wait_us(struct lock *lock, pthread_cond_t *cond, int64_t until_us)
{
	const struct timespec ts = { .tv_sec = (time_t)(until_us / 1000000),
		.tv_nsec = (long)(until_us % 1000000) * 1000 };
	int error;

	/* A waiting thread must hold no lock that other threads may need. */
	note_give(lock);
#ifdef LOCK_CHECKS
	assert(held == 0);
#endif
	if (until_us == LOCK_FOREVER)
		error = pthread_cond_wait(cond, &lock->mutex);
	else
		error = pthread_cond_timedwait(cond, &lock->mutex, &ts);
	note_take(lock);
	if (error != ETIMEDOUT)
		lock_must(error);
	return error == 0;
}
