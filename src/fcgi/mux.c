/*
 * What the loop calls mux for: deadlines, and connections that have input left.
 * conn.h has the invariants; acceptor.c accepts connections, conn.c watches
 * them, conn_read.c reads, exchange.c writes.
 *
 * Deadlines need no scan, and one timer: each list with deadlines holds its
 * connections in the order of parking, so the first one expires first.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "limit.h"
#include "log.h"

#include "acceptor.h"
#include "conn.h"

/* So many connections expire in a row. */
#define TURN 64

void
mux_time(struct mux *m, int64_t at)
{
	if (!m->timer.is_set || at < m->timer.at)
		loop_set(m->loop, &m->timer, at);
}

void
mux_again(struct mux *m)
{
	if (m->is_again)
		return;
	m->is_again = true;
	loop_send(m->loop, &m->again);
}

/* --- the end --- */

/*
 * Step by step:
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

/* Reads from the connections of a list, each once: those that come back to it
 * meanwhile have their turn in the next round. */
static void
read_each(struct conn_list *list)
{
	struct conn_list now = TAILQ_HEAD_INITIALIZER(now);
	struct conn *c;

	TAILQ_CONCAT(&now, list, link);
	TAILQ_FOREACH(c, &now, link)
	c->list = &now;
	while ((c = TAILQ_FIRST(&now)) != NULL) {
		conn_take(c);
		conn_read(c);
	}
}

/*
 * One step of mux_stop(): each connection between two requests is checked once
 * more, and closed if no request has come.  A connection that was never used
 * has been opened for a request, which is on its way.
 */
static void
look_again(struct mux *m)
{
	m->looked = true;
	mux_again(m);
	read_each(&m->idle);
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

/* Makes one step towards the end, if mux has to end.  mux may be freed by
 * then. */
static void
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

/* --- rounds --- */

static void
mux_come(struct loop_message *msg)
{
	struct mux *m = OWNER(msg, struct mux, again);

	m->is_again = false;
	/* They had input left after an answer was sent. */
	read_each(&m->ready);
	mux_advance(m);
}

/* --- deadlines --- */

/* The first connection of a list with deadlines, if it has expired; if not,
 * its deadline is set. */
static struct conn *
first_expired(struct mux *m, const struct conn_list *list, int64_t timeout)
{
	struct conn *c = TAILQ_FIRST(list);

	if (c == NULL || c->since + timeout <= loop_now(m->loop))
		return c;
	mux_time(m, c->since + timeout);
	return NULL;
}

/* The same for the connection that has been sending its head for longest. */
static struct conn *
slow_head(struct mux *m)
{
	struct conn *c = TAILQ_FIRST(&m->heads);

	if (c == NULL || c->arriving_since + m->io_timeout <= loop_now(m->loop))
		return c;
	mux_time(m, c->arriving_since + m->io_timeout);
	return NULL;
}

static void
conn_stalled(struct conn *c, const struct log_request *log, const char *doing)
{
	log_event(LOG_INFO, "peer-stalled", log, LOG_S("while", doing));
	conn_close(c);
}

/* Ends one connection that has expired.  False: there is none, and the timer is
 * set for the first of the others. */
static bool
mux_expire_one(struct mux *m)
{
	struct conn *c;

	if ((c = slow_head(m)) != NULL)
		conn_stalled(c, NULL, "reading the parameters");
	else if ((c = first_expired(m, &m->reading, m->io_timeout)) != NULL)
		conn_stalled(c, conn_log(c), "reading");
	else if ((c = first_expired(m, &m->sending, m->io_timeout)) == NULL) {
		if ((c = first_expired(m, &m->linger, CONN_LINGER)) != NULL)
			conn_close(c);
	} else if (c->state == CONN_STREAMING)
		exchange_give_up(&c->exchange);
	else
		conn_stalled(c, conn_log(c), "sending");
	return c != NULL;
}

/* Ends what has expired; after some of it the other connections have their
 * turn. */
static void
mux_expire(struct mux *m)
{
	int n = 0;

	while (n < TURN && mux_expire_one(m))
		n++;
	if (n == TURN)
		mux_time(m, loop_now(m->loop));
	if (m->resume_at != 0 && m->resume_at <= loop_now(m->loop))
		acceptor_resume(m);
	if (m->resume_at != 0)
		mux_time(m, m->resume_at);
}

static void
mux_due(struct loop_timer *t)
{
	struct mux *m = OWNER(t, struct mux, timer);

	mux_expire(m);
	mux_advance(m);
}

/* --- the whole --- */

static struct mux *
new_mux(const struct mux_owner *owner, int listen_fd)
{
	struct mux *m = calloc(1, sizeof(*m));
	int domain = AF_UNIX;
	socklen_t len = sizeof(domain);

	if (m == NULL)
		return NULL;
	m->owner = *owner;
	if (owner->connections == 0)
		m->owner.connections = LIMIT_CONNECTIONS;
	m->loop = owner->loop;
	m->timer.due = mux_due;
	m->again.come = mux_come;
	TAILQ_INIT(&m->idle);
	TAILQ_INIT(&m->reading);
	TAILQ_INIT(&m->sending);
	TAILQ_INIT(&m->linger);
	TAILQ_INIT(&m->ready);
	TAILQ_INIT(&m->heads);
	TAILQ_INIT(&m->bodies);
	m->listen_fd = listen_fd;
	(void)getsockopt(listen_fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	m->tcp = domain != AF_UNIX;
	return m;
}

enum rc
mux_peers(const struct conf *conf, struct peers *peers)
{
	const char *unknown;
	enum rc rc = RC_OK;

	if (!acceptor_find_peers(&conf->allow_peers, peers, &unknown)) {
		log_event(LOG_ERROR, "peers-unknown", NULL,
		    LOG_S("why", "no memory"));
		rc = RC_NOMEM;
	} else if (unknown != NULL) {
		log_event(LOG_ERROR, "peers-unknown", NULL,
		    LOG_S("allow_peers", unknown),
		    LOG_S("why", "no such user"));
		rc = RC_INVALID;
	}
	if (rc != RC_OK)
		acceptor_free_peers(peers);
	return rc;
}

void
mux_reload(struct mux *m, struct conf *conf, struct peers *peers)
{
	conf_ref(conf);
	conf_unref(m->conf);
	acceptor_free_peers(&m->peers);
	m->conf = conf;
	m->peers = *peers;
	*peers = (struct peers){ .uid = NULL };
	m->io_timeout = conf->io_timeout;
	/* Deadlines may be earlier than the timer. */
	mux_time(m, loop_now(m->loop));
}

enum rc
mux_open(struct mux **out, const struct mux_owner *owner, struct conf *conf,
    int listen_fd)
{
	struct peers peers;
	struct mux *m;
	enum rc rc;

	*out = NULL;
	if ((rc = mux_peers(conf, &peers)) != RC_OK)
		return rc;
	if ((m = new_mux(owner, listen_fd)) == NULL) {
		acceptor_free_peers(&peers);
		return RC_NOMEM;
	}
	mux_reload(m, conf, &peers);
	if ((rc = acceptor_start(m)) != RC_OK) {
		mux_free(m);
		return rc;
	}
	*out = m;
	return RC_OK;
}

void
mux_free(struct mux *m)
{
	if (m == NULL)
		return;
	assert(m->nconns == 0 && m->nfreeing == 0 && !m->is_again);
	acceptor_stop(m);
	loop_clear(m->loop, &m->timer);
	conf_unref(m->conf);
	acceptor_free_peers(&m->peers);
	free(m);
}
