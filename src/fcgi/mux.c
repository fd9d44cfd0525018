/*
 * What the leader does: it watches all connections, accepts new ones, reads
 * from and writes to the ready ones, and ends the expired ones.  It does this
 * in rounds, each of which ends when there is a request to handle.  conn.h
 * says which thread holds a connection; acceptor.c accepts it, conn_read.c
 * reads, exchange.c writes.
 *
 * New connections are tried first, and without epoll: most bring their request
 * along, and are answered and closed within one round.
 *
 * Deadlines need no timer and no scan: each list with deadlines holds its
 * connections in the order of parking, so the first one expires first.
 *
 * The connection that an event of epoll points to still exists when the event
 * is served: only the leader ends a parked connection, and only after all
 * events of one epoll_wait() have been served.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "thread.h"

#include "conn.h"
#include "exchange.h"
#include "mux.h"

#define EVENTS 64
/* The most rounds in a row that try new connections only. */
#define STREAK 64
/* While other requests wait, no body of that many bytes is fingerprinted. */
#define LONG_BODY 4096

/* Serves a connection that is ready for what it was parked for. */
static void
mux_serve(struct conn *c)
{
	char waste[4096];
	ssize_t n;

	lock_take(&c->mux->lock);
	conn_take(c);
	lock_give(&c->mux->lock);
	switch (c->state) {
	case CONN_READING:
	case CONN_REPLYING:
		conn_read(c);
		return;
	case CONN_SENDING:
		exchange_send(&c->exchange);
		return;
	case CONN_LINGERING:
		break;
	}
	n = recv(c->fd, waste, sizeof(waste), MSG_DONTWAIT);
	if (n > 0 && clock_mono() < c->since + CONN_LINGER)
		conn_park(c, CONN_LINGERING);
	else
		conn_close(c);
}

/* Serves the connections that had input left after an answer was sent. */
static void
serve_ready(struct mux *m)
{
	struct conn_list ready = TAILQ_HEAD_INITIALIZER(ready);
	struct conn *c;

	lock_take(&m->lock);
	TAILQ_CONCAT(&ready, &m->ready, link);
	TAILQ_FOREACH(c, &ready, link)
	c->list = &ready;
	lock_give(&m->lock);
	while ((c = TAILQ_FIRST(&ready)) != NULL) {
		conn_take(c);
		conn_read(c);
	}
}

/* The deadline of a connection on a list that has them: mono. */
static int64_t
mux_deadline(const struct mux *m, const struct conn *c)
{
	return c->since +
	    (c->list == &m->linger ? CONN_LINGER : atomic_load(&m->io_timeout));
}

/* Takes the first connection of a list with deadlines if it has expired. */
static struct conn *
take_expired(struct mux *m, struct conn_list *list, int64_t now)
{
	struct conn *c;

	lock_take(&m->lock);
	c = TAILQ_FIRST(list);
	if (c != NULL && mux_deadline(m, c) > now)
		c = NULL;
	if (c != NULL)
		conn_take(c);
	lock_give(&m->lock);
	return c;
}

/* Takes a connection if its head has taken too long. */
static struct conn *
take_slow_head(struct mux *m, int64_t now)
{
	struct conn *c;

	lock_take(&m->lock);
	c = TAILQ_FIRST(&m->heads);
	if (c != NULL && now - c->head_since < atomic_load(&m->io_timeout))
		c = NULL;
	if (c != NULL)
		conn_take(c);
	lock_give(&m->lock);
	return c;
}

static void
expire(struct mux *m)
{
	int64_t now = clock_mono();
	struct conn *c;

	while ((c = take_slow_head(m, now)) != NULL) {
		log_event(LOG_INFO, "peer-stalled", NULL,
		    LOG_S("while", "reading the parameters"));
		conn_close(c);
	}
	while ((c = take_expired(m, &m->active, now)) != NULL) {
		log_event(LOG_INFO, "peer-stalled", conn_log(c),
		    LOG_S("while",
			c->state == CONN_SENDING ? "sending" : "reading"));
		conn_close(c);
	}
	while ((c = take_expired(m, &m->linger, now)) != NULL)
		conn_close(c);
	if (m->resume_at != 0 && m->resume_at <= now)
		acceptor_resume(m);
}

/* --- rounds --- */

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The timeout for epoll_wait(): until the next action that needs no event. */
static int
next_timeout(struct mux *m)
{
	int64_t at = INT64_MAX;
	struct conn *c;

	lock_take(&m->lock);
	if ((c = TAILQ_FIRST(&m->active)) != NULL)
		at = earlier(at, mux_deadline(m, c));
	if ((c = TAILQ_FIRST(&m->linger)) != NULL)
		at = earlier(at, mux_deadline(m, c));
	if ((c = TAILQ_FIRST(&m->heads)) != NULL)
		at = earlier(at, c->head_since + atomic_load(&m->io_timeout));
	if (m->stopping && !m->stopped)
		at = earlier(at, m->arrive_until);
	if (m->closing)
		at = earlier(at, m->until);
	if (!TAILQ_EMPTY(&m->ready))
		at = 0;
	lock_give(&m->lock);
	if (m->resume_at != 0)
		at = earlier(at, m->resume_at);
	return at == INT64_MAX ? -1 : clock_left(at);
}

/* Whether nothing is left to be sent, or there is no time left for it. */
static bool
ended(struct mux *m)
{
	bool yes;

	lock_take(&m->lock);
	yes = m->closing && m->stopped &&
	    ((TAILQ_EMPTY(&m->active) && TAILQ_EMPTY(&m->linger)) ||
		clock_mono() >= m->until);
	lock_give(&m->lock);
	return yes;
}

/* Waits for an event of any connection, and serves all ready connections. */
static void
watch_all(struct mux *m)
{
	struct epoll_event events[EVENTS];
	bool accepting = false;
	uint64_t count;
	int n;

	n = epoll_wait(m->epoll, events, EVENTS, next_timeout(m));
	if (n == -1 && errno != EINTR)
		abort();
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == m)
			accepting = true;
		else if (events[i].data.ptr == &m->wake)
			(void)!read(m->wake, &count, sizeof(count));
		else
			mux_serve(events[i].data.ptr);
	}
	serve_ready(m);
	expire(m);
	if (accepting && !mux_is_refusing(m))
		(void)acceptor_run(m);
}

/* One round of the leader. */
static void
receive(struct mux *m)
{
	m->whole = 0;
	if (mux_is_refusing(m)) {
		if (mux_advance(m))
			return;
	} else if (m->resume_at == 0 && m->streak < STREAK) {
		m->streak++;
		(void)acceptor_run(m);
		if (m->whole > 0)
			return;
	}
	m->streak = 0;
	watch_all(m);
}

static void *
mux_run(void *arg)
{
	struct mux *m = arg;

	do {
		leader_stand_by(m->leader);
		receive(m);
	} while (!ended(m));
	mux_close_all(m, &m->active, true);
	mux_close_all(m, &m->linger, true);
	mux_close_all(m, &m->queue, true);
	assert(atomic_load(&m->nconns) == 0);
	return NULL;
}

static bool
mux_start_thread(struct mux *m)
{
	int error =
	    thread_start(&m->thread, "standby", THREAD_STACK, mux_run, m);

	if (error != 0)
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
	return error == 0;
}

static void
free_mux(struct mux *m)
{
	if (m->epoll != -1)
		close(m->epoll);
	if (m->wake != -1)
		close(m->wake);
	if (m->stop_waiting != -1)
		close(m->stop_waiting);
	leader_close(m->leader);
	conf_unref(m->conf);
	peers_free(&m->peers);
	pthread_cond_destroy(&m->refused_cond);
	lock_destroy(&m->lock);
	free(m);
}

static struct mux *
new_mux(int listen_fd)
{
	struct mux *m = calloc(1, sizeof(*m));
	int domain = AF_UNIX;
	socklen_t len = sizeof(domain);

	if (m == NULL)
		return NULL;
	lock_init(&m->lock, LOCK_CONNECTIONS);
	lock_cond_init(&m->refused_cond);
	TAILQ_INIT(&m->queue);
	TAILQ_INIT(&m->idle);
	TAILQ_INIT(&m->active);
	TAILQ_INIT(&m->linger);
	TAILQ_INIT(&m->ready);
	TAILQ_INIT(&m->heads);
	TAILQ_INIT(&m->bodies);
	m->listen_fd = listen_fd;
	(void)getsockopt(listen_fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	m->tcp = domain != AF_UNIX;
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->stop_waiting = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return m;
}

enum rc
mux_peers(const struct conf *conf, struct peers *peers)
{
	const char *unknown;
	enum rc rc = RC_OK;

	if (!peers_make(&conf->allow_peers, peers, &unknown)) {
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
		peers_free(peers);
	return rc;
}

void
mux_reload(struct mux *m, struct conf *conf, struct peers *peers)
{
	struct peers old_peers;
	struct conf *old;

	lock_take(&m->lock);
	old = m->conf;
	old_peers = m->peers;
	m->conf = conf_ref(conf);
	m->peers = *peers;
	atomic_store(&m->io_timeout, conf->io_timeout);
	lock_give(&m->lock);
	/* The leader may sleep until a later deadline. */
	conn_wake(m);
	conf_unref(old);
	peers_free(&old_peers);
}

enum rc
mux_open(struct mux **out, struct conf *conf, int listen_fd)
{
	struct mux *m = new_mux(listen_fd);
	struct epoll_event wake = { .events = EPOLLIN };
	struct epoll_event listener = { .events = EPOLLIN };
	struct peers peers;
	enum rc rc;

	*out = NULL;
	if (m == NULL)
		return RC_NOMEM;
	wake.data.ptr = &m->wake;
	listener.data.ptr = m;
	if ((rc = leader_open(&m->leader)) != RC_OK)
		goto out;
	rc = RC_IO;
	if (m->epoll == -1 || m->wake == -1 || m->stop_waiting == -1 ||
	    epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->wake, &wake) == -1 ||
	    epoll_ctl(m->epoll, EPOLL_CTL_ADD, listen_fd, &listener) == -1) {
		log_event(LOG_ERROR, "mux-not-opened", NULL,
		    LOG_S("why", strerror(errno)));
		goto out;
	}
	if ((rc = mux_peers(conf, &peers)) != RC_OK)
		goto out;
	mux_reload(m, conf, &peers);
	if (!mux_start_thread(m)) {
		rc = RC_IO;
		goto out;
	}
	*out = m;
	return RC_OK;
out:
	free_mux(m);
	return rc;
}

void
mux_stop_waiting(struct mux *m)
{
	static const uint64_t one = 1;

	/* The descriptor is never read, so it stays readable for all
	 * workers. */
	if (write(m->stop_waiting, &one, sizeof(one)) != sizeof(one))
		assert(errno == EAGAIN);
}

void
mux_close(struct mux *m, int64_t until_mono)
{
	if (m == NULL)
		return;
	mux_stop(m, 0);
	lock_take(&m->lock);
	m->closing = true;
	m->until = until_mono;
	lock_give(&m->lock);
	conn_wake(m);
	pthread_join(m->thread, NULL);
	free_mux(m);
}

static struct exchange *
take_queued(struct mux *m)
{
	struct conn *c;

	lock_take(&m->lock);
	c = TAILQ_FIRST(&m->queue);
	assert(c != NULL);
	conn_take(c);
	lock_give(&m->lock);
	if (c->exchange.request.body_len >= LONG_BODY)
		leader_yield();
	return &c->exchange;
}

struct exchange *
mux_next(struct mux *m)
{
	for (;;) {
		switch (leader_next(m->leader)) {
		case LEADER_RECEIVE:
			receive(m);
			break;
		case LEADER_HANDLE:
			return take_queued(m);
		case LEADER_STOP:
			return NULL;
		}
	}
}
