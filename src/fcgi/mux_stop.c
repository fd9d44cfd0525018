/*
 * How mux ends, step by step:
 *
 *  1. mux_refuse(): the connections in the backlog are accepted, if no other
 *     process will accept them.  Then the listening socket is not used any
 *     more.
 *  2. mux_stop(): each connection between two requests is read once more, and
 *     closed if no byte came.  Requests that are arriving may go on until
 *     arrive_until.
 *  3. No request begins any more: the owner ends its exchanges.
 *  4. mux_close(): the rest of the answers is sent until no time is left.
 *
 * A web server that has sent a request gets its answer.  A web server finds
 * its connection closed only if no byte of its request was read.
 */
#include "config.h"

#include "clock.h"

#include "conn.h"

/* One step of mux_refuse(): accepts the connections in the backlog, unless
 * another process accepts from it too; then accepts no more. */
static void
stop_refuse(struct mux *m)
{
	unsigned n = 0;

	if (m->take_waiting && m->accepted < m->owner.connections &&
	    m->resume_at == 0)
		n = acceptor_run(m);
	m->accepted += n;
	mux_again(m);
	if (n > 0)
		return;
	acceptor_stop(m);
	m->refused = true;
	m->owner.told(m->owner.arg, MUX_REFUSED);
}

/*
 * One step of mux_stop(): each connection between two requests is checked once
 * more, and closed if no request has come.  A connection that was never used
 * has been opened for a request, which is on its way.
 */
static void
look_again(struct mux *m)
{
	struct conn_list idle = TAILQ_HEAD_INITIALIZER(idle);
	struct conn *c;

	m->looked = true;
	mux_again(m);
	TAILQ_CONCAT(&idle, &m->idle, link);
	TAILQ_FOREACH(c, &idle, link)
	c->list = &idle;
	while ((c = TAILQ_FIRST(&idle)) != NULL) {
		conn_take(c);
		conn_read(c);
	}
}

/* Whether a request may still be arriving. */
static bool
is_arriving(const struct mux *m)
{
	return !TAILQ_EMPTY(&m->idle) || !TAILQ_EMPTY(&m->ready) ||
	    !TAILQ_EMPTY(&m->reading) || m->nwriting > 0;
}

/* From now on no request begins.  conn_park() and conn_give() ensure that
 * none is added later. */
static void
stop_stop(struct mux *m)
{
	if (!m->closing && is_arriving(m) &&
	    loop_now(m->loop) < m->arrive_until) {
		mux_time(m, m->arrive_until);
		return;
	}
	m->stopped = true;
	mux_again(m);
	conn_close_all(&m->idle);
	conn_close_all(&m->ready);
	conn_close_all(&m->reading);
	m->owner.told(m->owner.arg, MUX_STOPPED);
}

/* Ends the connections that are left when there is no more time. */
static void
stop_close(struct mux *m)
{
	if (m->nconns > 0 && loop_now(m->loop) < m->until) {
		mux_time(m, m->until);
		return;
	}
	mux_stop_waiting(m);
	conn_close_all(&m->sending);
	conn_close_all(&m->linger);
	if (m->nconns > 0 || m->nfreeing > 0 || m->is_again)
		return;
	m->closed = true;
	m->owner.told(m->owner.arg, MUX_CLOSED);
}

void
mux_advance(struct mux *m)
{
	if (!m->refusing)
		return;
	if (!m->refused)
		stop_refuse(m);
	else if (m->stopping && !m->looked)
		look_again(m);
	else if (m->looked && !m->stopped)
		stop_stop(m);
	else if (m->closing && !m->closed)
		stop_close(m);
}

void
mux_refuse(struct mux *m, bool take_waiting)
{
	m->refusing = true;
	m->take_waiting = take_waiting;
	mux_again(m);
}

void
mux_stop(struct mux *m, int64_t arrive_until_mono)
{
	m->refusing = m->stopping = true;
	m->arrive_until = arrive_until_mono;
	mux_again(m);
}

void
mux_stop_waiting(struct mux *m)
{
	struct conn_list streams = TAILQ_HEAD_INITIALIZER(streams);
	struct conn *c, *next;

	if (m->hasty)
		return;
	m->hasty = true;
	for (c = TAILQ_FIRST(&m->sending); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->state != CONN_STREAMING)
			continue;
		conn_take(c);
		c->list = &streams;
		TAILQ_INSERT_TAIL(&streams, c, link);
	}
	while ((c = TAILQ_FIRST(&streams)) != NULL)
		exchange_give_up(&c->exchange);
}

void
mux_close(struct mux *m, int64_t until_mono)
{
	mux_stop(m, 0);
	m->closing = true;
	m->until = until_mono;
}
