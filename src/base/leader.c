/*
 * Which thread leads.
 *
 *  1. At most one thread leads.  While none does, a thread is about to lead: a
 *     worker that was called, or the standby thread.
 *  2. A thread that takes a request while no thread leads becomes leader too.
 *  3. Waiting workers are called one by one, the last to wait first: its
 *     memory is still in the caches, and the memory of the others stays
 *     unused.
 *  4. The lead is taken only from a thread that handles a request, never from
 *     one that receives.  So data for the leader alone has one user.
 *
 * No clock measures how long a worker handles a request.  Every PATIENCE ms
 * the standby thread checks whether it is still the same request.  If no
 * request was handled in between, the standby thread sleeps until it is woken.
 *
 * A lookup in a file that is not in memory waits for the disk, and other
 * lookups could wait at the same time.  After such a wait the lead is handed
 * on before each of the next requests, which costs one more wake-up for each.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "clock.h"
#include "lock.h"
#include "leader.h"

/* A thread may have to wait that long for a processor (ms). */
#define PATIENCE 5
/* One request in LOOK_EVERY is checked for a read from the disk.  After such a
 * read the lead is handed on before each of the next DISK_COUNTS requests. */
#define LOOK_EVERY  32
#define DISK_COUNTS 64

struct waiter {
	SLIST_ENTRY(waiter) link;
	sem_t called;
};

struct leader {
	struct lock lock;
	SLIST_HEAD(, waiter) free;
	unsigned coming; /* called, and not yet running */
	unsigned posted;
	bool held; /* holder leads: it receives or handles */
	pthread_t holder;
	bool handling;
	uint64_t handled; /* requests that leaders handled */
	unsigned disk;    /* requests before which the lead is handed on */
	bool stopping;
	pthread_cond_t standby;
	bool standby_leads; /* while held */
	bool asleep;        /* the standby thread sleeps without a timeout */
};

/* Set while this thread handles a request that it took as leader.  The standby
 * thread may have taken the lead since then. */
static _Thread_local struct leader *handling;

static bool
leads(const struct leader *l)
{
	return l->held && pthread_equal(l->holder, pthread_self());
}

static void
leader_take(struct leader *l)
{
	assert(!l->held);
	l->held = true;
	l->holder = pthread_self();
	l->handling = l->standby_leads = false;
}

/* Takes the worker that waited last, if any, out of the list.  The caller must
 * wake it. */
static struct waiter *
call(struct leader *l)
{
	struct waiter *w = SLIST_FIRST(&l->free);

	if (w != NULL) {
		SLIST_REMOVE_HEAD(&l->free, link);
		l->coming++;
	}
	return w;
}

/* Wakes a worker that was called; NULL: none.  It takes the lock first of all,
 * so a caller that has given the lock back saves it another wait. */
static void
wake(struct waiter *w)
{
	if (w != NULL)
		sem_post(&w->called);
}

/* Hands the lead to the worker that was called, to a free worker, or else to
 * the standby thread.  Returns the worker that the caller must wake. */
static struct waiter *
let_go(struct leader *l)
{
	struct waiter *w = NULL;

	l->held = false;
	if (!l->stopping && l->coming == 0)
		w = call(l);
	if (l->stopping || l->coming == 0)
		pthread_cond_signal(&l->standby);
	return w;
}

/* The leader begins to handle a request. */
static void
handle(struct leader *l)
{
	l->handling = true;
	handling = l;
	l->handled++;
	if (l->disk > 0) {
		l->disk--;
		wake(let_go(l));
	} else if (l->asleep) {
		l->asleep = false;
		pthread_cond_signal(&l->standby);
	}
}

static void
wait_to_be_called(struct leader *l)
{
	struct waiter w;

	sem_init(&w.called, 0, 0);
	SLIST_INSERT_HEAD(&l->free, &w, link);
	lock_give(&l->lock);
	while (sem_wait(&w.called) == -1)
		assert(errno == EINTR);
	sem_destroy(&w.called);
	lock_take(&l->lock);
	l->coming--;
}

/* Whether this thread has read from a disk since the last check.  A check is a
 * system call, so it is rare unless ask is true. */
static bool
read_from_disk(bool ask)
{
	static _Thread_local unsigned requests;
	static _Thread_local long blocks;
	struct rusage usage;
	bool yes;

	if ((!ask && requests++ % LOOK_EVERY != 0) ||
	    getrusage(RUSAGE_THREAD, &usage) == -1)
		return false;
	yes = usage.ru_inblock != blocks;
	blocks = usage.ru_inblock;
	return yes;
}

enum leader_task
leader_next(struct leader *l)
{
	enum leader_task task;

	handling = NULL;
	lock_take(&l->lock);
	if (l->handling && leads(l))
		l->handling = false;
	for (;;) {
		if (l->posted > 0) {
			l->posted--;
			task = LEADER_HANDLE;
			if (!l->held)
				leader_take(l);
			if (leads(l)) {
				if (read_from_disk(l->disk > 0))
					l->disk = DISK_COUNTS;
				handle(l);
			}
			break;
		}
		if (l->stopping) {
			task = LEADER_STOP;
			if (leads(l))
				wake(let_go(l));
			break;
		}
		if (!l->held)
			leader_take(l);
		if (leads(l)) {
			task = LEADER_RECEIVE;
			break;
		}
		wait_to_be_called(l);
	}
	lock_give(&l->lock);
	return task;
}

void
leader_post(struct leader *l)
{
	struct waiter *w = NULL;

	lock_take(&l->lock);
	assert(leads(l));
	l->posted++;
	/* A leading worker handles the request itself; the standby thread
	 * calls a worker. */
	if (l->standby_leads)
		w = call(l);
	lock_give(&l->lock);
	wake(w);
}

void
leader_yield(void)
{
	struct leader *l = handling;
	struct waiter *w = NULL;

	if (l == NULL)
		return;
	handling = NULL;
	lock_take(&l->lock);
	if (l->handling && leads(l))
		w = let_go(l);
	lock_give(&l->lock);
	wake(w);
}

bool
leader_leads(struct leader *l)
{
	bool yes;

	lock_take(&l->lock);
	yes = leads(l);
	lock_give(&l->lock);
	return yes;
}

/* --- the standby thread ------------------------------------------------- */

/* Waits a little, then takes the lead from a worker that is still at the same
 * request as before the wait. */
static void
leader_watch(struct leader *l)
{
	uint64_t seen = l->handled;

	(void)lock_wait(&l->lock, &l->standby, clock_mono() + PATIENCE);
	if (l->held && l->handling && l->handled == seen)
		wake(let_go(l));
}

void
leader_stand_by(struct leader *l)
{
	uint64_t seen = 0;

	lock_take(&l->lock);
	if (leads(l) && !l->stopping &&
	    (l->coming > 0 || !SLIST_EMPTY(&l->free)))
		wake(let_go(l));
	while (!leads(l)) {
		if (!l->held &&
		    (l->stopping ||
			(SLIST_EMPTY(&l->free) && l->coming == 0))) {
			leader_take(l);
			l->standby_leads = true;
		} else if (l->handled != seen || (l->held && l->handling)) {
			seen = l->handled;
			leader_watch(l);
		} else {
			l->asleep = true;
			lock_wait(&l->lock, &l->standby, LOCK_FOREVER);
			l->asleep = false;
		}
	}
	lock_give(&l->lock);
}

/* --- beginning and end -------------------------------------------------- */

void
leader_stop(struct leader *l)
{
	struct waiter *w;

	lock_take(&l->lock);
	l->stopping = true;
	while ((w = call(l)) != NULL)
		wake(w);
	pthread_cond_signal(&l->standby);
	lock_give(&l->lock);
}

enum rc
leader_open(struct leader **out)
{
	struct leader *l = calloc(1, sizeof(*l));

	*out = l;
	if (l == NULL)
		return RC_NOMEM;
	lock_init(&l->lock, LOCK_LEADER);
	lock_cond_init(&l->standby);
	SLIST_INIT(&l->free);
	return RC_OK;
}

void
leader_close(struct leader *l)
{
	if (l == NULL)
		return;
	assert(SLIST_EMPTY(&l->free));
	pthread_cond_destroy(&l->standby);
	lock_destroy(&l->lock);
	free(l);
}
