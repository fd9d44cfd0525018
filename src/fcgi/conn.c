/*
 * Connections: made, parked, taken, handed on, ended.  See conn.h for the
 * invariants.  This file only frees requests and answers, and looks at nothing
 * in them.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caller.h"
#include "clock.h"
#include "limit.h"
#include "log.h"
#include "conn.h"

void
conn_wake(struct mux *m)
{
	static const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the leader is awake. */
	while (write(m->wake, &one, sizeof(one)) == -1 && errno == EINTR)
		continue;
}

struct conn *
conn_new(struct mux *m, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->mux = m;
	c->fd = fd;
	fcgi_init(&c->fcgi, LIMIT_CONNECTIONS);
	buf_init(&c->left, CONN_INPUT);
	c->exchange.conn = c;
	buf_init(&c->exchange.path, LIMIT_PATH);
	buf_init(&c->exchange.head,
	    LIMIT_HEAD + LIMIT_OWN_FIELDS + 128); /* and the status line */
	answer_init(&c->exchange.answer);
	atomic_fetch_add(&m->nconns, 1);
	return c;
}

const struct log_request *
conn_log(const struct conn *c)
{
	return c->exchange.conf != NULL ? &c->exchange.log : NULL;
}

/* --- shares ------------------------------------------------------------- */

/* A table of sums, by a hash of the caller's name (caller.h).  Two callers may
 * have one sum; which ones they are is another matter in each process. */
#define SHARES 1024 /* and CONN_SHARE_NONE */

static _Atomic uint64_t share_taken[SHARES + 1];
static _Atomic uint64_t seed; /* 0: not made yet */

static uint64_t
shares_seed(void)
{
	uint64_t made = 0, old = 0;

	if (atomic_load(&seed) == 0) {
		/* Without random bytes all processes have the same pairs. */
		if (getrandom(&made, sizeof(made), GRND_NONBLOCK) == -1)
			made = 0;
		made |= 1;
		(void)atomic_compare_exchange_strong(&seed, &old, made);
	}
	return atomic_load(&seed);
}

unsigned
conn_share_of(const char *address)
{
	char name[CALLER_NAME_LEN + 1];
	uint64_t hash = shares_seed();

	caller_name("", address, name);
	if (strcmp(name, "-") == 0)
		return CONN_SHARE_NONE;
	for (const char *p = name; *p != '\0'; p++) {
		hash =
		    (hash ^ (unsigned char)*p) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return 1 + (unsigned)(hash % SHARES);
}

bool
conn_share_has_room(unsigned share, uint64_t own, uint64_t more)
{
	const uint64_t half = spool_total() / 2,
		       now = atomic_load(&share_taken[share]);

	return share == CONN_SHARE_NONE || now <= own ||
	    (now <= half && more <= half - now);
}

void
conn_share_take(unsigned share, uint64_t bytes)
{
	atomic_fetch_add(&share_taken[share], bytes);
}

/* --- one connection ----------------------------------------------------- */

void
conn_drop_body(struct exchange *x)
{
	spool_free(x->body);
	x->body = NULL;
	atomic_fetch_sub(&share_taken[x->share], x->taken);
	x->taken = 0;
}

/* Forgets the request and the answer. */
static void
conn_reset(struct exchange *x)
{
	answer_free(&x->answer);
	conn_drop_body(x);
	x->share = CONN_SHARE_NONE;
	conf_unref(x->conf);
	x->conf = NULL;
	buf_free(&x->path);
	buf_free(&x->head);
	x->request = (struct request){ .params = NULL };
	log_request_clear(&x->log);
	x->limit = x->declared = x->received = 0;
	x->has_length = x->discard = x->broken = false;
	x->body_len = 0;
	x->app_status = 0;
	x->sent = 0;
}

/*
 * The time limit of head and parameters runs from their first byte; parking
 * does not start it again.  mux->lock is held.
 */
static void
time_head(struct conn *c, bool in_head)
{
	if (in_head == c->in_head)
		return;
	c->in_head = in_head;
	if (!in_head) {
		TAILQ_REMOVE(&c->mux->heads, c, head_link);
		return;
	}
	c->head_since = clock_mono();
	TAILQ_INSERT_TAIL(&c->mux->heads, c, head_link);
}

/*
 * The time of a body runs from when the rest of it was first waited for.  The
 * list is the leader's, and so is each connection on it.
 */
static void
time_body(struct conn *c, bool in_body)
{
	if (in_body == c->in_body)
		return;
	c->in_body = in_body;
	if (!in_body) {
		TAILQ_REMOVE(&c->mux->bodies, c, body_link);
		return;
	}
	c->body_since = clock_mono();
	TAILQ_INSERT_TAIL(&c->mux->bodies, c, body_link);
}

bool
conn_is_slow_body(const struct conn *c)
{
	return c->in_body &&
	    clock_mono() - c->body_since >= atomic_load(&c->mux->io_timeout);
}

void
conn_unwatch(struct conn *c)
{
	if (c->watched)
		(void)epoll_ctl(c->mux->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	c->watched = false;
}

void
conn_close(struct conn *c)
{
	struct mux *m = c->mux;
	unsigned before;

	assert(c->list == NULL);
	lock_take(&m->lock);
	time_head(c, false);
	lock_give(&m->lock);
	time_body(c, false);
	/* A child that is just being started may still hold a copy of the
	 * descriptor.  Then close() does not end epoll's interest. */
	conn_unwatch(c);
	close(c->fd);
	conn_reset(&c->exchange);
	buf_free(&c->left);
	fcgi_free(&c->fcgi);
	free(c);
	before = atomic_fetch_sub(&m->nconns, 1);
	assert(before > 0);
	(void)before;
}

static bool
conn_watch(struct conn *c)
{
	struct epoll_event event = { .events = EPOLLONESHOT,
		.data = { .ptr = c } };

	switch (c->state) {
	case CONN_READING:
	case CONN_LINGERING:
		event.events |= EPOLLIN;
		break;
	case CONN_REPLYING:
	case CONN_SENDING:
		event.events |= EPOLLOUT;
		break;
	}
	if (epoll_ctl(c->mux->epoll, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		c->fd, &event) == -1) {
		log_event(LOG_ERROR, "connection-dropped", NULL,
		    LOG_S("why", "epoll_ctl"), LOG_I("errno", errno));
		return false;
	}
	c->watched = true;
	return true;
}

/*
 * Whether a request has arrived on a connection that is about to be closed.
 * After this call the peer cannot send one: on a unix socket its write fails,
 * so it knows that no byte was read.  A request that was sent earlier, and not
 * read, would be lost by a reset.
 */
static bool
hang_up(const struct conn *c)
{
	int unread = 0;

	(void)shutdown(c->fd, SHUT_RD);
	return ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0;
}

void
conn_park(struct conn *c, enum conn_state state)
{
	struct mux *m = c->mux;
	bool request = state == CONN_READING || state == CONN_REPLYING;
	bool lingers =
	    c->state == CONN_LINGERING; /* already: no new deadline */
	bool wake = false, dead = false, arrived = false;
	bool idle = state == CONN_READING && fcgi_idle(&c->fcgi);

	assert(c->list == NULL);
	c->state = state;
	if (request && c->exchange.conf != NULL)
		time_body(c, true);
	lock_take(&m->lock);
	time_head(
	    c, request && c->exchange.conf == NULL && !fcgi_idle(&c->fcgi));
	if (m->looked && idle && c->served && c->left.len == 0)
		dead = !(arrived = hang_up(c));
	if (dead || (request && m->stopped)) {
		dead = true;
	} else if (state == CONN_READING && (c->left.len > 0 || arrived)) {
		c->list = &m->ready;
		wake = true;
	} else if (!conn_watch(c)) {
		dead = true;
	} else if (idle) {
		c->list = &m->idle;
	} else {
		c->list = state == CONN_LINGERING ? &m->linger : &m->active;
		if (!lingers)
			c->since = clock_mono();
		/* The leader may sleep without knowing this deadline. */
		wake = TAILQ_EMPTY(c->list);
	}
	if (!dead)
		TAILQ_INSERT_TAIL(c->list, c, link);
	lock_give(&m->lock);
	if (wake && !leader_leads(m->leader))
		conn_wake(m);
	if (dead)
		conn_close(c);
}

void
conn_take(struct conn *c)
{
	assert(c->list != NULL);
	TAILQ_REMOVE(c->list, c, link);
	c->list = NULL;
}

void
conn_queue(struct conn *c)
{
	struct mux *m = c->mux;
	bool stopped;

	assert(c->list == NULL);
	time_body(c, false);
	lock_take(&m->lock);
	time_head(c, false);
	stopped = m->stopped;
	if (!stopped) {
		c->list = &m->queue;
		TAILQ_INSERT_TAIL(&m->queue, c, link);
	}
	lock_give(&m->lock);
	if (stopped) {
		conn_close(c);
		return;
	}
	m->whole++;
	leader_post(m->leader);
}

void
conn_next(struct conn *c)
{
	bool keep = c->fcgi.keep_conn;

	conn_reset(&c->exchange);
	if (!keep) {
		conn_finish(c);
		return;
	}
	fcgi_next(&c->fcgi);
	c->served = true;
	conn_park(c, CONN_READING);
}

void
conn_finish(struct conn *c)
{
	int unread = 0;

	/* On a unix socket only the unread bytes can be lost; with TCP more
	 * may be on the way. */
	if (!c->mux->tcp &&
	    (ioctl(c->fd, FIONREAD, &unread) == -1 || unread == 0)) {
		conn_close(c);
		return;
	}
	buf_free(&c->left);
	if (shutdown(c->fd, SHUT_WR) == -1)
		conn_close(c);
	else
		conn_park(c, CONN_LINGERING);
}
