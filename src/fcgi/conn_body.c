/*
 * The body of a request as it arrives: keeps it within the limit of its route,
 * compares its length with CONTENT_LENGTH.
 *
 * A body is always read to its end before the request is answered, even if the
 * body is wrong.  Bytes that cannot be kept are discarded.
 *
 * What goes to the file of a large body is given to a helper, because a disk
 * may be slow: one part for each input, and no input is read meanwhile.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "scope.h"
#include "clock.h"
#include "limit.h"
#include "log.h"
#include "route.h"
#include "uuid.h"

#include "conn.h"

struct conn_part {
	struct helpers_task task;
	struct conn *conn;
	enum conn_step next; /* once it is written */
	enum rc rc;
	int error; /* errno */
	size_t len;
	char bytes[CONN_INPUT];
};

/* --- the length --- */

/*
 * Reads CONTENT_LENGTH; an empty one counts as absent (RFC 3875, section
 * 4.1.2).  A web server may send it twice; then both must be equal.
 */
static enum body_state
declared_length(struct exchange *x)
{
	const struct request *rq = &x->request;
	int64_t n;

	for (size_t i = 0; i < rq->nparams; i++) {
		if (strcmp(rq->params[i].name, "CONTENT_LENGTH") != 0 ||
		    *rq->params[i].value == '\0')
			continue;
		if (!ascii_number(rq->params[i].value, &n) ||
		    (x->has_length && (uint64_t)n != x->declared))
			return BODY_BAD_LENGTH;
		x->declared = (uint64_t)n;
		x->has_length = true;
	}
	return BODY_WHOLE;
}

void
conn_body_begin(struct exchange *x)
{
	struct request *rq = &x->request;
	const struct conf_route *route;

	rq->body_state = declared_length(x);
	route = route_find(x->conf, rq->path);
	x->limit = route_body_limit(x->conf, route, rq);
	if (rq->body_state == BODY_WHOLE && x->has_length &&
	    x->declared > x->limit)
		rq->body_state = BODY_TOO_LARGE;
}

/* --- what the bodies of one client take of spool_total --- */

/*
 * The bodies of one address together may take half of it, so that no client
 * keeps the bodies of others out; a body that is alone may take all.  A table
 * of sums, by a hash of the caller's name (scope.h).  Two callers may have one
 * sum; which ones they are is another matter in each process.
 */
#define SHARES 1024
/* Of clients without an address, whose bodies have no limit but that of all. */
#define SHARE_NONE 0

static uint64_t share_taken[SHARES + 1];

/* The share of REMOTE_ADDR, which may be NULL. */
static unsigned
share_of(const char *address)
{
	static uint32_t seed; /* 0: not made yet */
	char name[CALLER_NAME_LEN + 1];
	uint64_t hash;

	if (seed == 0)
		seed = uuid_bits() | 1;
	hash = seed;
	scope_caller_name("", address, name);
	if (strcmp(name, "-") == 0)
		return SHARE_NONE;
	for (const char *p = name; *p != '\0'; p++) {
		hash =
		    (hash ^ (unsigned char)*p) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return 1 + (unsigned)(hash % SHARES);
}

static bool
share_has_room(const struct exchange *x, uint64_t more)
{
	const uint64_t half = spool_total() / 2, now = share_taken[x->share];

	return x->share == SHARE_NONE || now <= x->taken ||
	    (now <= half && more <= half - now);
}

/* --- the bytes --- */

static void
free_part(struct exchange *x)
{
	if (x->part != NULL)
		x->conn->mux->unwritten -= x->part->len;
	free(x->part);
	x->part = NULL;
}

/* A large file takes a while to be freed. */
struct old_spool {
	struct helpers_task task; /* first */
	struct mux *mux;
	struct spool *spool;
};

static void
free_old(struct helpers_task *t)
{
	spool_free(((struct old_spool *)(void *)t)->spool);
}

static void
old_freed(struct helpers_task *t)
{
	struct old_spool *old = (struct old_spool *)(void *)t;
	struct mux *m = old->mux;

	free(old);
	m->nfreeing--;
	if (m->refusing)
		mux_again(m);
}

void
conn_body_free(struct mux *m, struct spool *s)
{
	struct old_spool *old = NULL;

	if (s != NULL && spool_fd(s) != -1 && m->owner.helpers != NULL)
		old = malloc(sizeof(*old));
	if (old == NULL) {
		spool_free(s);
		return;
	}
	*old =
	    (struct old_spool){ .task = { .work = free_old, .done = old_freed },
		    .mux = m,
		    .spool = s };
	m->nfreeing++;
	spool_uncount(s);
	helpers_ask(m->owner.helpers, &old->task);
}

void
conn_body_drop(struct exchange *x)
{
	free_part(x);
	conn_body_free(x->conn->mux, x->body);
	x->body = NULL;
	share_taken[x->share] -= x->taken;
	x->taken = 0;
	x->share = SHARE_NONE;
}

bool
conn_body_is_slow(const struct conn *c)
{
	return c->arriving == &c->mux->bodies &&
	    clock_mono() - c->arriving_since >= c->mux->io_timeout;
}

void
conn_body_spoil(struct exchange *x, enum body_state state)
{
	x->request.body_state = state;
	conn_body_drop(x);
}

static void
body_unstorable(struct exchange *x, enum rc rc)
{
	const char *why = rc == RC_NOMEM ? rc_text(rc) : strerror(errno);

	log_event(LOG_ERROR, "body-unstorable", &x->log,
	    LOG_S("dir", spool_dir()), LOG_S("why", why));
	conn_body_spoil(x, BODY_UNSTORABLE);
}

/* Whether there is room for that many bytes more of this body. */
static enum body_state
room_for(const struct exchange *x, size_t len)
{
	if (!spool_has_room(x->conn->mux->unwritten + len))
		return BODY_NO_ROOM;
	return share_has_room(x, len) ? BODY_WHOLE : BODY_NO_SHARE;
}

/*
 * The same, but if there is none, the room of bodies that have been arriving
 * for too long is taken, the longest first: a peer that trickles must not keep
 * others out.
 */
static enum body_state
make_room(struct exchange *x, size_t len)
{
	enum body_state state = room_for(x, len);
	struct conn *c;

	TAILQ_FOREACH(c, &x->conn->mux->bodies, arriving_link)
	{
		if (state == BODY_WHOLE || c == x->conn ||
		    !conn_body_is_slow(c))
			break;
		if (c->exchange.body == NULL || c->exchange.part != NULL ||
		    (state == BODY_NO_SHARE && c->exchange.share != x->share))
			continue;
		log_event(LOG_WARN, "peer-stalled", &c->exchange.log,
		    LOG_S("while", "reading the body"),
		    LOG_I("received", c->exchange.received),
		    LOG_S("note", "its room is needed"));
		conn_body_spoil(&c->exchange, BODY_NO_ROOM);
		state = room_for(x, len);
	}
	return state;
}

/* Adds the bytes to the part that a helper will write.  False: they are to be
 * written now. */
static bool
add_to_part(struct exchange *x, const void *data, size_t len)
{
	struct mux *m = x->conn->mux;
	struct conn_part *p = x->part;

	if (p == NULL &&
	    (m->owner.helpers == NULL ||
		spool_length(x->body) + len <= LIMIT_SPOOL_MEMORY ||
		(p = malloc(sizeof(*p))) == NULL))
		return false;
	if (x->part == NULL)
		p->len = 0;
	x->part = p;
	assert(len <= sizeof(p->bytes) - p->len);
	memcpy(p->bytes + p->len, data, len);
	p->len += len;
	m->unwritten += len;
	return true;
}

void
conn_body_add(struct exchange *x, const void *data, size_t len)
{
	enum body_state state;
	enum rc rc;

	x->received += len;
	if (x->discard || x->request.body_state != BODY_WHOLE)
		return;
	if (x->received > x->limit) {
		conn_body_spoil(x, BODY_TOO_LARGE);
		return;
	}
	if (x->has_length && x->received > x->declared) {
		conn_body_spoil(x, BODY_MISMATCH);
		return;
	}
	if (x->body == NULL)
		x->share = share_of(request_param(&x->request, "REMOTE_ADDR"));
	if ((state = make_room(x, len)) != BODY_WHOLE) {
		conn_body_spoil(x, state);
		return;
	}
	if (x->body == NULL && (x->body = spool_new()) == NULL) {
		body_unstorable(x, RC_NOMEM);
		return;
	}
	share_taken[x->share] += len;
	x->taken += len;
	if (!add_to_part(x, data, len) &&
	    (rc = spool_write(x->body, data, len)) != RC_OK)
		body_unstorable(x, rc);
}

static void
write_part(struct helpers_task *t)
{
	struct conn_part *p = (struct conn_part *)(void *)t;

	p->rc = spool_write(p->conn->exchange.body, p->bytes, p->len);
	p->error = errno;
}

static void
part_written(struct helpers_task *t)
{
	struct conn_part *p = (struct conn_part *)(void *)t;
	struct conn *c = p->conn;
	const enum conn_step next = p->next;
	const enum rc rc = p->rc;

	c->mux->nwriting--;
	errno = p->error;
	free_part(&c->exchange);
	if (rc != RC_OK)
		body_unstorable(&c->exchange, rc);
	conn_go(c, next);
}

bool
conn_body_writes(struct conn *c, enum conn_step step)
{
	struct conn_part *p = c->exchange.part;

	if (p == NULL || step == CONN_FINISH || step == CONN_DROP)
		return false;
	p->task =
	    (struct helpers_task){ .work = write_part, .done = part_written };
	p->conn = c;
	p->next = step;
	c->mux->nwriting++;
	helpers_ask(c->mux->owner.helpers, &p->task);
	return true;
}

void
conn_body_end(struct exchange *x)
{
	struct request *rq = &x->request;
	enum rc rc = RC_OK;

	/* The engine asks whether there is any. */
	(void)make_room(x, 0);
	if (rq->body_state == BODY_WHOLE && !x->discard && x->has_length &&
	    x->received != x->declared)
		conn_body_spoil(x, BODY_MISMATCH);
	if (x->body == NULL)
		return;
	rq->body = spool_bytes(x->body, &rc);
	if (rq->body == NULL) {
		body_unstorable(x, rc);
		return;
	}
	rq->body_len = (size_t)spool_length(x->body);
	rq->body_fd = spool_fd(x->body);
}
