/*
 * Connections: made, parked, taken, given to the owner, ended.  See conn.h for
 * the invariants.  This file only frees requests and answers, and looks at
 * nothing in them.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "limit.h"
#include "log.h"

#include "conn.h"

const struct log_request *
conn_log(const struct conn *c)
{
	return c->exchange.conf != NULL ? &c->exchange.log : NULL;
}

/* Forgets the request and the answer. */
static void
conn_reset(struct exchange *x)
{
	conn_body_free(x->conn->mux, x->answer.spool);
	x->answer.spool = NULL;
	answer_free(&x->answer);
	conn_body_drop(x);
	conf_unref(x->conf);
	x->conf = NULL;
	buf_free(&x->path);
	buf_free(&x->head);
	buf_free(&x->unsent);
	x->request = (struct request){ .params = NULL };
	log_request_clear(&x->log);
	x->limit = x->declared = x->received = 0;
	x->has_length = x->discard = x->broken = false;
	x->room = NULL;
	x->body_len = 0;
	x->app_status = 0;
	x->sent = 0;
}

/* What is arriving on the connection: a list of mux, or NULL.  The time runs
 * from its first byte, or from when the rest of a body was first waited for;
 * parking does not start it again. */
static void
set_arriving(struct conn *c, struct conn_list *what)
{
	struct mux *m = c->mux;

	if (what == c->arriving)
		return;
	if (c->arriving != NULL)
		TAILQ_REMOVE(c->arriving, c, arriving_link);
	c->arriving = what;
	if (what == NULL)
		return;
	c->arriving_since = clock_mono();
	TAILQ_INSERT_TAIL(what, c, arriving_link);
	if (what == &m->heads)
		mux_time(m, c->arriving_since + m->io_timeout);
}

void
conn_take(struct conn *c)
{
	if (c->list != NULL)
		TAILQ_REMOVE(c->list, c, link);
	c->list = NULL;
}

void
conn_close(struct conn *c)
{
	struct mux *m = c->mux;

	conn_take(c);
	set_arriving(c, NULL);
	/* A child that is just being started may still hold a copy of the
	 * descriptor.  Then close() does not end epoll's interest. */
	loop_unwatch(m->loop, &c->watch);
	close(c->fd);
	conn_reset(&c->exchange);
	buf_free(&c->left);
	fcgi_free(&c->fcgi);
	free(c);
	assert(m->nconns > 0);
	m->nconns--;
	if (m->refusing)
		mux_again(m);
}

void
conn_close_all(struct conn_list *list)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(list)) != NULL) {
		loop_doing("connection");
		/* It leaves the list.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		conn_close(c);
	}
}

/* Something has come for a connection. */
static void
conn_ready(struct loop_watch *w, unsigned events)
{
	struct conn *c = OWNER(w, struct conn, watch);
	char waste[4096];

	(void)events;
	if (c->list == NULL)
		loop_unwatch(c->mux->loop, w);
	if (c->list == NULL || c->list == &c->mux->ready)
		return;
	switch (c->state) {
	case CONN_READING:
	case CONN_REPLYING:
		conn_take(c);
		conn_read(c);
		return;
	case CONN_STREAMING:
	case CONN_SENDING:
		conn_take(c);
		exchange_send(&c->exchange);
		return;
	case CONN_LINGERING:
		if (recv(c->fd, waste, sizeof(waste), MSG_DONTWAIT) <= 0)
			conn_close(c);
	}
}

struct conn *
conn_new(struct mux *m, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct exchange *x;

	if (c == NULL)
		return NULL;
	c->mux = m;
	c->fd = fd;
	c->watch = (struct loop_watch){ .ready = conn_ready, .fd = -1 };
	fcgi_init(&c->fcgi);
	buf_init(&c->left, CONN_INPUT);
	x = &c->exchange;
	x->conn = c;
	buf_init(&x->path, LIMIT_PATH);
	buf_init(&x->head,
	    LIMIT_HEAD + LIMIT_OWN_FIELDS + 128); /* and the status line */
	buf_init(&x->unsent, ANSWER_PART + 1024);
	answer_init(&x->answer);
	m->nconns++;
	return c;
}

static struct conn_list *
list_of(const struct conn *c)
{
	struct mux *m = c->mux;

	switch (c->state) {
	case CONN_READING:
		return fcgi_idle(&c->fcgi) ? &m->idle : &m->reading;
	case CONN_REPLYING:
		return &m->reading;
	case CONN_STREAMING:
	case CONN_SENDING:
		return &m->sending;
	case CONN_LINGERING:
		break;
	}
	return &m->linger;
}

static bool
is_reading(enum conn_state state)
{
	return state == CONN_READING || state == CONN_REPLYING;
}

static bool
waits_for_room(enum conn_state state)
{
	return state == CONN_REPLYING || state == CONN_STREAMING ||
	    state == CONN_SENDING;
}

bool
conn_wait(struct conn *c, enum conn_state state)
{
	struct mux *m = c->mux;
	enum rc rc;

	assert(c->list == NULL);
	c->state = state;
	rc = loop_watch(m->loop, &c->watch, c->fd,
	    waits_for_room(state) ? EPOLLOUT : EPOLLIN);
	if (rc != RC_OK) {
		log_event(LOG_ERROR, "connection-dropped", conn_log(c),
		    LOG_S("why", rc_text(rc)));
		return false;
	}
	c->list = list_of(c);
	TAILQ_INSERT_TAIL(c->list, c, link);
	if (c->list == &m->idle)
		return true;
	c->since = clock_mono();
	mux_time(m,
	    c->since + (state == CONN_LINGERING ? CONN_LINGER : m->io_timeout));
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
	const bool reads = is_reading(state), idle = fcgi_idle(&c->fcgi);
	bool input = c->left.len > 0;

	assert(c->list == NULL);
	if (m->refusing)
		mux_again(m);
	set_arriving(c,
	    !reads                         ? NULL
		: c->exchange.conf != NULL ? &m->bodies
		: idle                     ? NULL
					   : &m->heads);
	if ((reads && m->stopped) || (m->closing && clock_mono() >= m->until)) {
		conn_close(c);
		return;
	}
	if (m->looked && state == CONN_READING && idle && c->served && !input &&
	    !(input = hang_up(c))) {
		conn_close(c);
		return;
	}
	if (state == CONN_READING && input) {
		c->state = state;
		c->list = &m->ready;
		TAILQ_INSERT_TAIL(c->list, c, link);
		mux_again(m);
	} else if (!conn_wait(c, state))
		conn_close(c);
}

void
conn_give(struct conn *c)
{
	struct mux *m = c->mux;

	assert(c->list == NULL);
	set_arriving(c, NULL);
	if (m->refusing)
		mux_again(m);
	loop_doing("request");
	if (m->stopped)
		conn_close(c);
	else
		m->owner.take(m->owner.arg, &c->exchange);
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
