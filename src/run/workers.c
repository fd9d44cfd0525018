/*
 * Which run has which process.
 *
 * A process that becomes free goes to the run that has waited longest, without
 * a moment in which another run could take it.  Of several free ones the one
 * that was used last is taken: its memory is warm, and the others may be
 * swapped out.
 *
 * The end of a process, and what it prints, is told to the run that has it.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backoff.h"
#include "clock.h"
#include "uuid.h"
#include "workers_impl.h"
#include "workers.h"

/* Pauses (ms) before a program that did not start is started again. */
#define PAUSE_FIRST 100
#define PAUSE_MOST  5000

/* How often stderr is read at once, 4 KiB each: others have their turn. */
#define READS 4

struct workers_all workers_all;

void
workers_wake(void)
{
	loop_set(workers_all.loop, &workers_all.timer, 0);
}

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
	    (pool->waiters != NULL && workers_all.ended == NULL);
}

void
workers_add_waiters(struct workers_pool *pool, struct workers_ask *waiters)
{
	struct workers_ask **end = &pool->waiters;

	while (*end != NULL)
		end = &(*end)->next;
	*end = waiters;
	for (; waiters != NULL; waiters = waiters->next)
		waiters->pool = pool;
}

static void
tell_ask(struct loop_message *m)
{
	struct workers_ask *ask = OWNER(m, struct workers_ask, message);

	ask->told(ask);
}

/* Answers the run that has waited longest. */
static void
answer_waiter(struct workers_pool *pool, struct workers_process *p, int error)
{
	struct workers_ask *ask = pool->waiters;

	pool->waiters = ask->next;
	ask->pool = NULL;
	ask->process = p;
	ask->error = error;
	ask->message.come = tell_ask;
	loop_send(workers_all.loop, &ask->message);
}

void
workers_refuse(struct workers_pool *pool, int error)
{
	while (pool->waiters != NULL)
		answer_waiter(pool, NULL, error);
}

static void
pool_take_process(struct workers_process *p, struct workers_ask *user)
{
	p->state = WORKERS_BUSY;
	p->user = user;
	p->requests++;
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

	if (pool->waiters == NULL) {
		p->state = WORKERS_FREE;
		p->next_free = pool->free;
		pool->free = p;
		return;
	}
	pool_take_process(p, pool->waiters);
	answer_waiter(pool, p, 0);
}

static void
process_printed(struct loop_watch *w, unsigned events)
{
	struct workers_process *p = OWNER(w, struct workers_process, watch_err);

	(void)events;
	if (p->state == WORKERS_BUSY)
		p->user->news(p->user, p->exited); /* its run reads */
	else
		workers_read_stderr(p, &p->errlog);
}

static void
process_exited(struct loop_watch *w, unsigned events)
{
	struct workers_process *p =
	    OWNER(w, struct workers_process, watch_exit);

	(void)events;
	loop_unwatch(workers_all.loop, w);
	p->exited = true;
	if (p->state == WORKERS_BUSY)
		p->user->news(p->user, true);
	else
		workers_wake();
}

enum rc
workers_watch(struct workers_process *p)
{
	enum rc rc;

	p->watch_exit =
	    (struct loop_watch){ .ready = process_exited, .fd = -1 };
	p->watch_err =
	    (struct loop_watch){ .ready = process_printed, .fd = -1 };
	rc = loop_watch(
	    workers_all.loop, &p->watch_exit, p->child.pidfd, EPOLLIN);
	if (rc == RC_OK)
		rc = loop_watch(
		    workers_all.loop, &p->watch_err, p->err, EPOLLIN);
	return rc;
}

void
workers_unwatch(struct workers_process *p)
{
	loop_unwatch(workers_all.loop, &p->watch_exit);
	loop_unwatch(workers_all.loop, &p->watch_err);
}

/* Takes a free process, or waits for one; false: it waits. */
static bool
pool_take_free(struct workers_pool *pool, struct workers_ask *ask)
{
	struct workers_process *p;

	if (pool == NULL)
		return true;
	while ((p = pool->free) != NULL) {
		pool->free = p->next_free;
		/* The loop may not have heard of its end yet. */
		if (child_exited(&p->child)) {
			p->state = WORKERS_SPENT;
			workers_wake();
			continue;
		}
		pool_take_process(p, ask);
		ask->process = p;
		return true;
	}
	ask->error = pool->error;
	if (pool->failures > 0 && !has_process(pool))
		return true;
	workers_add_waiters(pool, ask);
	if (pool->retired)
		workers_wake(); /* it starts a process for this one */
	return false;
}

/* --- for runs ------------------------------------------------------------ */

void
workers_ask(struct workers_ask *ask, const struct conf_program *program)
{
	bool is_there = true;

	ask->error = ESHUTDOWN;
	ask->process = NULL;
	ask->next = NULL;
	if (workers_all.loop != NULL)
		is_there = pool_take_free(workers_find(program), ask);
	if (is_there)
		ask->told(ask);
}

bool
workers_withdraw(struct workers_ask *ask)
{
	struct workers_pool *pool = ask->pool;
	struct workers_ask **at;

	if (pool != NULL) {
		for (at = &pool->waiters; *at != ask; at = &(*at)->next)
			continue;
		*at = ask->next;
		ask->pool = NULL;
	}
	return pool != NULL;
}

const char *
workers_why(int error)
{
	return error == ETIMEDOUT ? "no process became free in time"
	    : error == ESHUTDOWN  ? "no process is kept"
				  : "the last process could not be started, or "
				    "ended at its start";
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
	assert(p->state == WORKERS_BUSY);
	workers_unwatch(p);
}

void
workers_read_stderr(struct workers_process *p, struct errlog *log)
{
	ssize_t n = 1;

	for (int i = 0; i < READS && n > 0; i++)
		n = errlog_read(log, p->err, SIZE_MAX);
	if (n == -1) {
		loop_unwatch(workers_all.loop, &p->watch_err);
		close(p->err);
		p->err = -1;
	}
}

void
workers_give(struct workers_process *p)
{
	struct workers_pool *pool = p->pool;
	const unsigned most = p->program->max_requests;
	bool spent;

	assert(p->state == WORKERS_BUSY);
	pool->failures = 0;
	pool->next_start = 0;
	p->old = p->old || (most > 0 && p->requests >= most);
	spent = p->exited || p->old || !workers_is_wanted(pool);
	if (spent)
		p->state = WORKERS_SPENT;
	else
		workers_offer(p);
	if (spent)
		workers_wake();
}

void
workers_reject(struct workers_process *p, const char *why)
{
	assert(p->state == WORKERS_BUSY);
	p->state = WORKERS_SPENT;
	p->why = why;
	/* One that has answered before did not fail at its start. */
	if (p->requests == 1)
		workers_failed(p->pool, ECONNREFUSED);
	workers_wake();
}

void
workers_lost(struct workers_process *p, bool heard)
{
	struct workers_pool *pool = p->pool;

	assert(p->state == WORKERS_BUSY);
	p->state = WORKERS_GONE;
	pool->n--;
	/* One that has answered before did not end at its start. */
	if (heard || p->requests > 1) {
		pool->failures = 0;
		pool->next_start = 0;
	} else
		workers_failed(pool, ECONNREFUSED);
	workers_wake();
}
