/*
 * The turn, and who waits for what.
 *
 *  1. The turn is held by one thread, or by nobody while somebody is on his
 *     way to it: a worker that was called, or the spare thread.
 *  2. Whoever takes a request while nobody has the turn takes that too.
 *  3. Workers that wait are called one by one, the last to come first: what
 *     he touches is still in the caches, and those below him need no memory.
 *  4. The turn is taken away only from who handles a request, never from who
 *     receives: so what belongs to the turn has one user at a time.
 *
 * How long a worker has been at it is not measured: the spare thread looks
 * every PATIENCE ms whether it is still the same request, and sleeps without
 * end once there was none in between.
 *
 * A request that is looked up in a file that is not in memory waits for the
 * disk, and others could wait for it at the same time.  Once that was seen, the
 * turn is passed before each of the next requests: they cost a wake-up more.
 *
 * It knows neither connections nor requests.
 */
#include "config.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"

#include "crew.h"

/* ms; a thread may have to wait that long for a processor. */
#define PATIENCE 5
/* How often to look whether a request was read from the disk, and for how many
 * requests that counts. */
#define LOOK_EVERY  32
#define DISK_COUNTS 64

struct waiter {
	SLIST_ENTRY(waiter) link;
	pthread_cond_t cond;
	bool called;
};

struct crew {
	pthread_mutex_t lock;
	SLIST_HEAD(, waiter) free;
	unsigned coming; /* called, and not here yet */
	unsigned posted;
	bool held; /* by holder, who receives or handles */
	pthread_t holder;
	bool handling;
	uint64_t handled; /* requests by who had the turn */
	unsigned disk;    /* requests before which the turn is passed */
	bool stopping;
	pthread_cond_t spare;
	bool spare_has_it; /* while it is held */
	bool asleep;       /* the spare thread, without end */
};

static void
lock(struct crew *c)
{
	if (pthread_mutex_lock(&c->lock) != 0)
		abort();
}

static void
unlock(struct crew *c)
{
	if (pthread_mutex_unlock(&c->lock) != 0)
		abort();
}

static bool
mine(const struct crew *c)
{
	return c->held && pthread_equal(c->holder, pthread_self());
}

static void
take(struct crew *c)
{
	assert(!c->held);
	c->held = true;
	c->holder = pthread_self();
	c->handling = c->spare_has_it = false;
}

static void
call(struct crew *c, struct waiter *w)
{
	SLIST_REMOVE_HEAD(&c->free, link);
	w->called = true;
	c->coming++;
	pthread_cond_signal(&w->cond);
}

/* For whoever is coming, a worker that is free, or else the spare thread. */
static void
let_go(struct crew *c)
{
	struct waiter *w = SLIST_FIRST(&c->free);

	c->held = false;
	if (c->stopping || (c->coming == 0 && w == NULL))
		pthread_cond_signal(&c->spare);
	else if (c->coming == 0)
		call(c, w);
}

/* A worker that has the turn goes to handle a request. */
static void
handle(struct crew *c)
{
	c->handling = true;
	c->handled++;
	if (c->disk > 0) {
		c->disk--;
		let_go(c);
	} else if (c->asleep) {
		c->asleep = false;
		pthread_cond_signal(&c->spare);
	}
}

static void
wait_to_be_called(struct crew *c)
{
	struct waiter w = { .cond = PTHREAD_COND_INITIALIZER };

	SLIST_INSERT_HEAD(&c->free, &w, link);
	while (!w.called)
		pthread_cond_wait(&w.cond, &c->lock);
	c->coming--;
	pthread_cond_destroy(&w.cond);
}

/* Whether this thread has read from a disk since it was last asked; it is not
 * always asked. */
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

enum crew_task
crew_next(struct crew *c)
{
	enum crew_task task;

	lock(c);
	if (c->handling && mine(c))
		c->handling = false;
	for (;;) {
		if (c->posted > 0) {
			c->posted--;
			task = CREW_HANDLE;
			if (!c->held)
				take(c);
			if (mine(c)) {
				if (read_from_disk(c->disk > 0))
					c->disk = DISK_COUNTS;
				handle(c);
			}
			break;
		}
		if (c->stopping) {
			task = CREW_STOP;
			if (mine(c))
				let_go(c);
			break;
		}
		if (!c->held)
			take(c);
		if (mine(c)) {
			task = CREW_RECEIVE;
			break;
		}
		wait_to_be_called(c);
	}
	unlock(c);
	return task;
}

void
crew_post(struct crew *c)
{
	struct waiter *w;

	lock(c);
	assert(mine(c));
	c->posted++;
	/* A worker handles it himself; only the spare thread needs one. */
	if (c->spare_has_it && (w = SLIST_FIRST(&c->free)) != NULL)
		call(c, w);
	unlock(c);
}

void
crew_pass(struct crew *c)
{
	lock(c);
	if (c->handling && mine(c))
		let_go(c);
	unlock(c);
}

bool
crew_has_turn(struct crew *c)
{
	bool yes;

	lock(c);
	yes = mine(c);
	unlock(c);
	return yes;
}

/* --- the spare thread --------------------------------------------------- */

/* Until somebody has been at one request for too long: then he has not the
 * turn any more. */
static void
watch(struct crew *c)
{
	const int64_t until = clock_mono() + PATIENCE;
	const struct timespec ts = { .tv_sec = (time_t)(until / 1000),
		.tv_nsec = (long)(until % 1000) * 1000000 };
	uint64_t seen = c->handled;

	(void)pthread_cond_timedwait(&c->spare, &c->lock, &ts);
	if (c->held && c->handling && c->handled == seen)
		let_go(c);
}

void
crew_spare(struct crew *c)
{
	uint64_t seen = 0;

	lock(c);
	if (mine(c) && !c->stopping &&
	    (c->coming > 0 || !SLIST_EMPTY(&c->free)))
		let_go(c);
	while (!mine(c)) {
		if (!c->held &&
		    (c->stopping ||
			(SLIST_EMPTY(&c->free) && c->coming == 0))) {
			take(c);
			c->spare_has_it = true;
		} else if (c->held && (c->handling || c->handled != seen)) {
			seen = c->handled;
			watch(c);
		} else {
			c->asleep = true;
			pthread_cond_wait(&c->spare, &c->lock);
			c->asleep = false;
		}
	}
	unlock(c);
}

/* --- beginning and end -------------------------------------------------- */

void
crew_stop(struct crew *c)
{
	struct waiter *w;

	lock(c);
	c->stopping = true;
	while ((w = SLIST_FIRST(&c->free)) != NULL)
		call(c, w);
	pthread_cond_signal(&c->spare);
	unlock(c);
}

enum rc
crew_open(struct crew **out)
{
	struct crew *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	*out = c;
	if (c == NULL)
		return RC_NOMEM;
	if (pthread_condattr_init(&attr) != 0 ||
	    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
	    pthread_mutex_init(&c->lock, NULL) != 0 ||
	    pthread_cond_init(&c->spare, &attr) != 0)
		abort(); /* on Linux they only set memory */
	pthread_condattr_destroy(&attr);
	SLIST_INIT(&c->free);
	return RC_OK;
}

void
crew_close(struct crew *c)
{
	if (c == NULL)
		return;
	assert(SLIST_EMPTY(&c->free));
	pthread_cond_destroy(&c->spare);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
