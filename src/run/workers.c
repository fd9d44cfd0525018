/*
 * Which run has which process.
 *
 * A process that becomes free goes to the run that has waited longest, without
 * a moment in which another run could take it.  Of several free ones the one
 * that was used last is taken: its memory is warm, and the others may be
 * swapped out.
 *
 * The spawner hears of the end of a process, and of what it prints, by epoll(7)
 * as it happens (EPOLLET).  While a run has the process it notes that only; the
 * run polls both itself, and workers_give() looks at the note under the lock.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backoff.h"
#include "clock.h"
#include "leader.h"
#include "uuid.h"
#include "workers_impl.h"
#include "workers.h"

/* Pauses (ms) before a program that did not start is started again. */
#define PAUSE_FIRST 100
#define PAUSE_MOST  5000

struct workers_all workers_all = { .epoll = -1, .wake = -1 };

void
workers_wake(void)
{
	const uint64_t one = 1;

	if (write(workers_all.wake, &one, sizeof(one)) != sizeof(one))
		assert(errno == EAGAIN);
}

/* --- with the lock ------------------------------------------------------- */

/* After a reload a request may still have the handler of the configuration
 * before.  Its route is the same. */
struct workers_pool *
workers_find(const struct conf_program *program)
{
	struct workers_pool *pool, *found = NULL;

	for (pool = workers_all.pools; pool != NULL; pool = pool->next) {
		if (strcmp(pool->program->route, program->route) != 0)
			continue;
		if (!pool->retired)
			return pool;
		found = pool;
	}
	return found;
}

bool
workers_is_wanted(const struct workers_pool *pool)
{
	return !pool->retired ||
	    (pool->waiters != NULL && !workers_all.stopping);
}

void
workers_add_waiters(struct workers_pool *pool, struct workers_waiter *waiters)
{
	struct workers_waiter **end = &pool->waiters;

	while (*end != NULL)
		end = &(*end)->next;
	*end = waiters;
	for (; waiters != NULL; waiters = waiters->next)
		waiters->pool = pool;
}

void
workers_refuse(struct workers_pool *pool, int error)
{
	struct workers_waiter *waiter;

	while ((waiter = pool->waiters) != NULL) {
		pool->waiters = waiter->next;
		waiter->error = error;
		pthread_cond_signal(&waiter->told);
	}
}

/* Whether a process is there. */
static bool
has_process(const struct workers_pool *pool)
{
	const struct workers_process *p;

	for (p = pool->all; p != NULL; p = p->next)
		if (p->state == WORKERS_FREE || p->state == WORKERS_BUSY)
			return true;
	return false;
}

void
workers_failed(struct workers_pool *pool, int error)
{
	pool->error = error;
	pool->failures++;
	pool->next_start = clock_mono() +
	    backoff_pause(
		PAUSE_FIRST, (int)pool->failures - 1, PAUSE_MOST, uuid_bits());
	if (!has_process(pool))
		workers_refuse(pool, error);
}

void
workers_offer(struct workers_process *p)
{
	struct workers_pool *pool = p->pool;
	struct workers_waiter *waiter = pool->waiters;

	if (waiter == NULL) {
		p->state = WORKERS_FREE;
		p->next_free = pool->free;
		pool->free = p;
		return;
	}
	pool->waiters = waiter->next;
	p->state = WORKERS_BUSY;
	p->requests++;
	waiter->process = p;
	pthread_cond_signal(&waiter->told);
}

static void
remove_waiter(struct workers_waiter *waiter)
{
	struct workers_waiter **at = &waiter->pool->waiters;

	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
}

/* Waits for a process; *error if it gets none.  A waiter with a result is in no
 * list, and its pool may be gone. */
static struct workers_process *
wait_for_one(struct workers_pool *pool, int64_t until, int *error)
{
	struct workers_waiter waiter = { .process = NULL };
	bool late = false;

	lock_cond_init(&waiter.told);
	workers_add_waiters(pool, &waiter);
	if (pool->retired)
		workers_wake(); /* it starts a process for this waiter */
	while (waiter.process == NULL && waiter.error == 0 && !late)
		late = !lock_wait(&workers_all.lock, &waiter.told, until);
	if (waiter.process == NULL && waiter.error == 0) {
		remove_waiter(&waiter);
		waiter.error = ETIMEDOUT;
	}
	pthread_cond_destroy(&waiter.told);
	*error = waiter.error;
	return waiter.process;
}

static struct workers_process *
take_free(struct workers_pool *pool, int64_t until, int *error)
{
	struct workers_process *p;

	*error = ESHUTDOWN;
	if (workers_all.draining || pool == NULL)
		return NULL;
	while ((p = pool->free) != NULL) {
		pool->free = p->next_free;
		/* The spawner may not have heard of its end yet. */
		if (child_exited(&p->child)) {
			p->state = WORKERS_SPENT;
			workers_wake();
			continue;
		}
		p->state = WORKERS_BUSY;
		p->requests++;
		return p;
	}
	*error = pool->error;
	if (pool->failures > 0 && !has_process(pool))
		return NULL;
	return wait_for_one(pool, until, error);
}

/* --- for runs ------------------------------------------------------------ */

struct workers_process *
workers_take(const struct conf_program *program, int64_t until, int *error,
    const char **why)
{
	struct workers_process *p = NULL;

	*error = ESHUTDOWN;
	*why = "no process is kept";
	leader_yield();
	if (!workers_all.open)
		return NULL;
	lock_take(&workers_all.lock);
	p = take_free(workers_find(program), until, error);
	lock_give(&workers_all.lock);
	if (*error == ETIMEDOUT)
		*why = "no process became free in time";
	else if (*error != ESHUTDOWN)
		*why = "the last process could not be started, or ended at "
		       "its start";
	return p;
}

/* A closed descriptor may stay in the set for as long as another thread starts
 * a program, which has copies of all descriptors until its exec. */
static void
unwatch(int fd)
{
	if (fd != -1)
		(void)epoll_ctl(workers_all.epoll, EPOLL_CTL_DEL, fd, NULL);
}

void
workers_unwatch(struct workers_process *p)
{
	unwatch(p->child.pidfd);
	unwatch(p->err);
}

int
workers_connect(const struct workers_process *p)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, error;

	snprintf(
	    to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", p->address);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool
workers_was_deaf(const struct workers_process *p)
{
	int fd;

	/* It is dead, so nothing but its own children can mind the flag. */
	if (fcntl(p->listener, F_SETFL, O_NONBLOCK) == -1 ||
	    (fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) == -1)
		return false;
	close(fd);
	return true;
}

void
workers_leave(struct workers_process *p)
{
	lock_take(&workers_all.lock);
	assert(p->state == WORKERS_BUSY);
	p->leaving = true;
	lock_give(&workers_all.lock);
	workers_unwatch(p);
}

bool
workers_read_stderr(struct workers_process *p, struct errlog *log)
{
	ssize_t n = errlog_read(log, p->err, SIZE_MAX);

	if (n == -1) {
		unwatch(p->err);
		close(p->err);
		p->err = -1;
	}
	return n > 0;
}

void
workers_give(struct workers_process *p)
{
	struct workers_pool *pool = p->pool;
	const unsigned most = p->program->max_requests;
	bool spent;

	lock_take(&workers_all.lock);
	assert(p->state == WORKERS_BUSY);
	pool->failures = 0;
	pool->next_start = 0;
	p->old = p->old || (most > 0 && p->requests >= most);
	spent = p->exited || p->old || !workers_is_wanted(pool) ||
	    workers_all.stopping;
	if (spent)
		p->state = WORKERS_SPENT;
	else
		workers_offer(p);
	lock_give(&workers_all.lock);
	if (spent)
		workers_wake();
}

void
workers_reject(struct workers_process *p, const char *why)
{
	lock_take(&workers_all.lock);
	assert(p->state == WORKERS_BUSY);
	p->state = WORKERS_SPENT;
	p->why = why;
	/* One that has answered before did not fail at its start. */
	if (p->requests == 1)
		workers_failed(p->pool, ECONNREFUSED);
	lock_give(&workers_all.lock);
	workers_wake();
}

void
workers_lost(struct workers_process *p, bool heard)
{
	struct workers_pool *pool = p->pool;

	lock_take(&workers_all.lock);
	assert(p->state == WORKERS_BUSY);
	p->state = WORKERS_GONE;
	pool->n--;
	/* One that has answered before did not end at its start. */
	if (heard || p->requests > 1) {
		pool->failures = 0;
		pool->next_start = 0;
	} else
		workers_failed(pool, ECONNREFUSED);
	lock_give(&workers_all.lock);
	workers_wake();
}

void
workers_drain(void)
{
	struct workers_pool *pool;

	if (!workers_all.open)
		return;
	lock_take(&workers_all.lock);
	workers_all.draining = true;
	for (pool = workers_all.pools; pool != NULL; pool = pool->next)
		workers_refuse(pool, ESHUTDOWN);
	lock_give(&workers_all.lock);
}
