/*
 * How mux ends.  The leader takes each step:
 *
 *  1. mux_refuse(): the connections in the backlog are accepted, if no other
 *     process will accept them.  Then the listening socket is not used any
 *     more.
 *  2. mux_stop(): each connection between two requests is read once more, and
 *     closed if no byte came.  Requests that are arriving may go on until
 *     arrive_until.
 *  3. No request begins any more: the workers handle the queue, and end.
 *
 * A web server that has sent a request gets its answer.  A web server finds
 * its connection closed only if no byte of its request was read.
 */
#include "config.h"

#include <pthread.h>

#include "clock.h"
#include "limit.h"

#include "conn.h"
#include "mux.h"

void
mux_close_all(struct mux *m, struct conn_list *list, bool all)
{
	struct conn_list doomed = TAILQ_HEAD_INITIALIZER(doomed);
	struct conn *c, *next;

	lock_take(&m->lock);
	for (c = TAILQ_FIRST(list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!all && c->state == CONN_SENDING)
			continue;
		conn_take(c);
		TAILQ_INSERT_TAIL(&doomed, c, link);
		c->list = &doomed;
	}
	lock_give(&m->lock);
	while ((c = TAILQ_FIRST(&doomed)) != NULL) {
		conn_take(c);
		conn_close(c);
	}
}

/* One step of mux_refuse(): accepts the connections in the backlog, unless
 * another process accepts from it too; then accepts no more. */
static void
stop_refuse(struct mux *m, bool take_waiting)
{
	if (take_waiting && m->taken < LIMIT_CONNECTIONS && m->resume_at == 0 &&
	    acceptor_waits(m)) {
		m->taken += acceptor_run(m);
		return;
	}
	acceptor_stop(m);
	lock_take(&m->lock);
	m->refused = true;
	lock_give(&m->lock);
	pthread_cond_broadcast(&m->refused_cond);
}

/*
 * One step of mux_stop(): each connection between two requests is checked once
 * more, and closed if no request has come.  A connection that was never used
 * has been opened for a request, which is on its way.
 */
static void
look_again(struct mux *m)
{
	struct conn_list found = TAILQ_HEAD_INITIALIZER(found);
	struct conn *c, *next;

	lock_take(&m->lock);
	m->looked = true;
	for (c = TAILQ_FIRST(&m->idle); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		conn_take(c);
		TAILQ_INSERT_TAIL(&found, c, link);
		c->list = &found;
	}
	lock_give(&m->lock);
	while ((c = TAILQ_FIRST(&found)) != NULL) {
		conn_take(c);
		/* A held connection must give no event. */
		conn_unwatch(c);
		conn_read(c);
	}
}

/* Whether a request may still be arriving.  mux->lock is held. */
static bool
is_arriving(struct mux *m)
{
	struct conn *c;

	if (!TAILQ_EMPTY(&m->idle) || !TAILQ_EMPTY(&m->ready))
		return true;
	TAILQ_FOREACH(c, &m->active, link)
	if (c->state != CONN_SENDING)
		return true;
	return false;
}

/* From now on no request begins.  conn_park() and conn_queue() ensure that
 * none is added later. */
static void
stop_stop(struct mux *m)
{
	lock_take(&m->lock);
	m->stopped = true;
	lock_give(&m->lock);
	mux_close_all(m, &m->idle, true);
	mux_close_all(m, &m->ready, true);
	mux_close_all(m, &m->active, false);
	leader_stop(m->leader);
}

bool
mux_advance(struct mux *m)
{
	bool refuse_now, take, look_now, stop_now;

	lock_take(&m->lock);
	refuse_now = m->refusing && !m->refused;
	take = m->take_waiting;
	look_now = m->stopping && !m->looked;
	stop_now = m->looked && !m->stopped &&
	    (m->closing || !is_arriving(m) || clock_mono() >= m->arrive_until);
	lock_give(&m->lock);
	if (refuse_now)
		stop_refuse(m, take);
	else if (look_now)
		look_again(m);
	else if (stop_now)
		stop_stop(m);
	return refuse_now || look_now || stop_now;
}

bool
mux_is_refusing(struct mux *m)
{
	bool yes;

	lock_take(&m->lock);
	yes = m->refusing;
	lock_give(&m->lock);
	return yes;
}

void
mux_refuse(struct mux *m, bool take_waiting)
{
	lock_take(&m->lock);
	m->refusing = true;
	m->take_waiting = take_waiting;
	lock_give(&m->lock);
	conn_wake(m);
	lock_take(&m->lock);
	while (!m->refused)
		lock_wait(&m->lock, &m->refused_cond, LOCK_FOREVER);
	lock_give(&m->lock);
}

void
mux_stop(struct mux *m, int64_t arrive_until_mono)
{
	lock_take(&m->lock);
	m->refusing = true;
	m->stopping = true;
	m->arrive_until = arrive_until_mono;
	lock_give(&m->lock);
	conn_wake(m);
}
