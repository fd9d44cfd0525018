/*
 * Locks that know their place in the order.
 *
 * A thread takes locks in the order of enum lock_rank and holds no two of the
 * same rank.  Test builds (--enable-record-checks) assert that at each
 * lock_take().  src/README says what each lock guards.  No function here
 * fails: an error of pthreads is a bug, and ends the process.
 */
#ifndef LOCK_H
#define LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The order, from the first lock that a thread may take to the last. */
enum lock_rank {
	LOCK_SCHEDULER,
	LOCK_CONNECTIONS,
	LOCK_LEADER,
	LOCK_PROCESSES,
	LOCK_RATE,
	LOCK_BUDGET,
	LOCK_STORE,
	LOCK_COMMITTER,
	LOCK_REFUSED,
	LOCK_REPEATS,
	LOCK_ATTENTION
};

struct lock {
	pthread_mutex_t mutex;
	enum lock_rank rank;
};

void lock_init(struct lock *lock, enum lock_rank rank);
void lock_destroy(struct lock *lock); /* no thread holds it */
void lock_take(struct lock *lock);
void lock_give(struct lock *lock);

/* Makes a condition that uses the monotonic clock for its waits. */
void lock_cond_init(pthread_cond_t *cond);

#define LOCK_FOREVER INT64_MAX

/*
 * Gives the lock, which the caller holds, waits for the condition, and takes
 * the lock again.  until is a reading of clock_mono() (ms) or LOCK_FOREVER.
 * False: until is past.  May return early.
 */
bool lock_wait(struct lock *lock, pthread_cond_t *cond, int64_t until);

/* The same; until_us is a reading of clock_mono_us(). */
bool lock_wait_us(struct lock *lock, pthread_cond_t *cond, int64_t until_us);

#endif
