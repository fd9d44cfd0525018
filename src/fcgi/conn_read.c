/*
 * From bytes to a whole request: feeds the record layer, keeps the body within
 * the limit of its route, compares its length with CONTENT_LENGTH.
 *
 *  1. A body is always read to its end before the request is answered, even if
 *     the body is wrong.  Bytes that cannot be kept are discarded.
 *  2. Nothing here waits for a peer.  Input that is read while a reply cannot
 *     be sent, or after the end of a request, stays in conn->left.  No more is
 *     read until it was fed.
 *
 * Only the leader runs this.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cginame.h"
#include "fault.h"
#include "limit.h"
#include "log.h"
#include "route.h"
#include "uuid.h"
#include "conn.h"

/* Reads in a row from one connection, before the others are served. */
#define READS 8

enum step {
	STEP_MORE,    /* all input is used up */
	STEP_WHOLE,   /* a request is complete */
	STEP_BLOCKED, /* a reply waits for the peer */
	STEP_FINISH,  /* all is sent: close */
	STEP_DROP     /* close at once; an unexpected end is logged */
};

static bool
parse_length(const char *text, uint64_t *out)
{
	uint64_t n = 0;

	for (; *text != '\0'; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*out = n;
	return true;
}

/*
 * Reads CONTENT_LENGTH; an empty one counts as absent (RFC 3875, section
 * 4.1.2).  A web server may send it twice; then both must be equal.
 */
static enum body_state
declared_length(struct exchange *x)
{
	const struct request *rq = &x->request;
	uint64_t n;

	for (size_t i = 0; i < rq->nparams; i++) {
		if (strcmp(rq->params[i].name, "CONTENT_LENGTH") != 0 ||
		    *rq->params[i].value == '\0')
			continue;
		if (!parse_length(rq->params[i].value, &n) ||
		    (x->has_length && n != x->declared))
			return BODY_BAD_LENGTH;
		x->declared = n;
		x->has_length = true;
	}
	return BODY_WHOLE;
}

static const char *
conn_read_param_or_empty(const struct request *rq, const char *name)
{
	const char *value = request_param(rq, name);

	return value != NULL ? value : "";
}

/* Whether all parameters of that name have that value. */
static bool
says_one_thing(const struct request *rq, const char *name, const char *value)
{
	for (size_t i = 0; i < rq->nparams; i++)
		if (strcmp(rq->params[i].name, name) == 0 &&
		    strcmp(rq->params[i].value, value) != 0)
			return false;
	return true;
}

/* Returns why the parameters are no request to be handled; NULL: they are.
 * path: the result of cginame_path(). */
static const char *
invalid(const struct conn *c, const struct request *rq, enum rc path)
{
	if (c->fcgi.has_nul)
		return "A CGI variable has a NUL in its name or value.";
	if (*rq->method == '\0')
		return "The web server sent no REQUEST_METHOD.";
	/*
	 * The method decides whether a request is guarded, so it must be
	 * unique.  Of other variables the last one counts, for the handler
	 * too: web servers send such duplicates where a configuration
	 * overrides an included one.
	 */
	if (!says_one_thing(rq, "REQUEST_METHOD", rq->method))
		return "REQUEST_METHOD came twice, with two values.";
	if (path == RC_INVALID)
		return "PATH_INFO leads out of SCRIPT_NAME by \"..\".";
	if (path != RC_OK)
		return "SCRIPT_NAME and PATH_INFO together are too long.";
	return NULL;
}

/* The parameters are complete: finds the route, and the limit of the body. */
static bool
conn_read_begin(struct conn *c)
{
	struct exchange *x = &c->exchange;
	struct request *rq = &x->request;
	const struct conf_route *route;
	enum rc rc;

	lock_take(&c->mux->lock);
	x->conf = conf_ref(c->mux->conf);
	lock_give(&c->mux->lock);
	uuid_urn(rq->instance);
	x->log.instance = rq->instance;
	rq->log = &x->log;
	rq->params = c->fcgi.params;
	rq->nparams = c->fcgi.nparams;
	rq->method = conn_read_param_or_empty(rq, "REQUEST_METHOD");
	rq->query = conn_read_param_or_empty(rq, "QUERY_STRING");
	x->log.method = request_param(rq, "REQUEST_METHOD");
	x->log.peer = request_param(rq, "REMOTE_ADDR");
	rq->body_fd = -1;
	rc = cginame_path(conn_read_param_or_empty(rq, "SCRIPT_NAME"),
	    conn_read_param_or_empty(rq, "PATH_INFO"), &x->path);
	if (rc == RC_NOMEM) {
		log_event(LOG_ERROR, "request-dropped", &x->log,
		    LOG_S("why", "no memory"));
		return false;
	}
	rq->path = x->log.path = x->path.data;
	if ((rq->invalid = invalid(c, rq, rc)) != NULL) {
		rq->path = "/";
		x->log.path = NULL;
		rq->body_state = BODY_WHOLE;
		x->discard = true;
		return true;
	}
	rq->body_state = declared_length(x);
	route = route_find(x->conf, rq->path);
	x->limit = route_body_limit(x->conf, route, rq);
	if (rq->body_state == BODY_WHOLE && x->has_length &&
	    x->declared > x->limit)
		rq->body_state = BODY_TOO_LARGE;
	return true;
}

/* Records what is wrong with the body; the rest is only drained. */
static void
spoil(struct exchange *x, enum body_state state)
{
	x->request.body_state = state;
	conn_drop_body(x);
}

static void
unstorable(struct exchange *x, enum rc rc)
{
	const char *why = rc == RC_NOMEM ? rc_text(rc) : strerror(errno);

	log_event(LOG_ERROR, "body-unstorable", &x->log,
	    LOG_S("dir", spool_dir()), LOG_S("why", why));
	spoil(x, BODY_UNSTORABLE);
}

/* Whether there is room for that many bytes more of this body. */
static enum body_state
room_for(const struct exchange *x, size_t len)
{
	if (!spool_has_room(len))
		return BODY_NO_ROOM;
	return conn_share_has_room(x->share, x->taken, len) ? BODY_WHOLE
							    : BODY_NO_SHARE;
}

/*
 * The same, but if there is none, the room of bodies that have been arriving
 * for too long is taken, the longest first: a peer that trickles must not keep
 * others out.
 */
static enum body_state
conn_read_make_room(struct exchange *x, size_t len)
{
	enum body_state state = room_for(x, len);
	struct conn *c;

	TAILQ_FOREACH(c, &x->conn->mux->bodies, body_link)
	{
		if (state == BODY_WHOLE || c == x->conn ||
		    !conn_is_slow_body(c))
			break;
		if (c->exchange.body == NULL ||
		    (state == BODY_NO_SHARE && c->exchange.share != x->share))
			continue;
		log_event(LOG_WARN, "peer-stalled", &c->exchange.log,
		    LOG_S("while", "reading the body"),
		    LOG_I("received", c->exchange.received),
		    LOG_S("note", "its room is needed"));
		spoil(&c->exchange, BODY_NO_ROOM);
		state = room_for(x, len);
	}
	return state;
}

static void
take_body(struct exchange *x, const void *data, size_t len)
{
	enum body_state state;
	enum rc rc = RC_NOMEM;

	x->received += len;
	if (x->discard || x->request.body_state != BODY_WHOLE)
		return;
	if (x->received > x->limit) {
		spoil(x, BODY_TOO_LARGE);
		return;
	}
	if (x->has_length && x->received > x->declared) {
		spoil(x, BODY_MISMATCH);
		return;
	}
	if (x->body == NULL)
		x->share =
		    conn_share_of(request_param(&x->request, "REMOTE_ADDR"));
	if ((state = conn_read_make_room(x, len)) != BODY_WHOLE) {
		spoil(x, state);
		return;
	}
	if (x->body == NULL)
		x->body = spool_new();
	if (x->body != NULL) {
		conn_share_take(x->share, len);
		x->taken += len;
		rc = spool_write(x->body, data, len);
	}
	if (rc != RC_OK)
		unstorable(x, rc);
}

static void
end_body(struct exchange *x)
{
	struct request *rq = &x->request;
	enum rc rc = RC_OK;

	/* The engine asks whether there is any. */
	(void)conn_read_make_room(x, 0);
	if (rq->body_state == BODY_WHOLE && !x->discard && x->has_length &&
	    x->received != x->declared)
		spoil(x, BODY_MISMATCH);
	if (x->body == NULL)
		return;
	rq->body = spool_bytes(x->body, &rc);
	if (rq->body == NULL) {
		unstorable(x, rc);
		return;
	}
	rq->body_len = (size_t)spool_length(x->body);
	rq->body_fd = spool_fd(x->body);
}

/* The peer aborted the request.  Before the parameters were complete, the only
 * answer is FCGI_END_REQUEST. */
static enum step
aborted(struct conn *c)
{
	unsigned char end[FCGI_END_SIZE];

	if (c->exchange.conf != NULL) {
		spoil(&c->exchange, BODY_ABORTED);
		return STEP_WHOLE;
	}
	fcgi_end(c->fcgi.id, 0, end);
	if (buf_add(&c->fcgi.reply, end, sizeof(end)) != RC_OK)
		return STEP_DROP;
	c->fcgi.closing = !c->fcgi.keep_conn;
	fcgi_next(&c->fcgi);
	return STEP_MORE;
}

static enum step
flush_reply(struct conn *c)
{
	struct buf *reply = &c->fcgi.reply;
	ssize_t n;

	while (reply->len > 0) {
		n = send(c->fd, reply->data, reply->len,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? STEP_BLOCKED : STEP_DROP;
		buf_consume(reply, (size_t)n);
	}
	buf_free(reply);
	return c->fcgi.closing ? STEP_FINISH : STEP_MORE;
}

/* Feeds input until an event needs attention; *taken is the number of bytes
 * that were fed. */
static enum step
feed(struct conn *c, const char *data, size_t len, size_t *taken)
{
	enum step step = STEP_MORE;
	size_t used;

	*taken = 0;
	while (step == STEP_MORE && *taken < len) {
		switch (
		    fcgi_feed(&c->fcgi, data + *taken, len - *taken, &used)) {
		case FCGI_EV_MORE:
		case FCGI_EV_REPLY:
			break;
		case FCGI_EV_HEAD:
			if (!conn_read_begin(c))
				step = STEP_DROP;
			break;
		case FCGI_EV_BODY:
			take_body(&c->exchange, c->fcgi.body, c->fcgi.body_len);
			break;
		case FCGI_EV_END:
			end_body(&c->exchange);
			step = STEP_WHOLE;
			break;
		case FCGI_EV_ABORT:
			step = aborted(c);
			break;
		case FCGI_EV_ERROR:
			log_event(LOG_WARN, "protocol-error", conn_log(c),
			    LOG_S("why", c->fcgi.why));
			step = STEP_DROP;
			break;
		}
		*taken += used;
		if (step == STEP_MORE && c->fcgi.reply.len > 0)
			step = flush_reply(c);
	}
	return step;
}

/* Logs the end of input, or an error.  A request that was begun is not run. */
static void
log_gone(const struct conn *c, const char *why)
{
	if (fcgi_idle(&c->fcgi))
		return;
	log_event(LOG_INFO, "request-dropped", conn_log(c), LOG_S("why", why),
	    LOG_I("received", c->exchange.received));
}

/* Reads once.  *again: there may be more. */
static enum step
read_some(struct conn *c, bool *again)
{
	char *input = c->mux->input;
	enum step step;
	size_t taken;
	ssize_t n;

	*again = false;
	do
		n = recv(c->fd, input, CONN_INPUT, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN)
		return STEP_MORE;
	if (n <= 0) {
		log_gone(c, n == 0 ? "the peer closed" : strerror(errno));
		return STEP_DROP;
	}
	step = feed(c, input, (size_t)n, &taken);
	assert(step != STEP_MORE || taken == (size_t)n);
	if ((step == STEP_WHOLE || step == STEP_BLOCKED) &&
	    buf_add(&c->left, input + taken, (size_t)n - taken) != RC_OK)
		return STEP_DROP;
	*again = n == CONN_INPUT;
	return step;
}

static enum step
read_and_feed(struct conn *c)
{
	enum step step = STEP_MORE;
	bool again = true;
	size_t taken;

	if (c->fcgi.reply.len > 0)
		step = flush_reply(c);
	if (step == STEP_MORE && c->left.len > 0) {
		step = feed(c, c->left.data, c->left.len, &taken);
		buf_consume(&c->left, taken);
		if (c->left.len == 0)
			buf_free(&c->left);
	}
	for (int i = 0; i < READS && step == STEP_MORE && again; i++)
		step = read_some(c, &again);
	return step;
}

void
conn_read(struct conn *c)
{
	switch (read_and_feed(c)) {
	case STEP_MORE:
		conn_park(c, CONN_READING);
		break;
	case STEP_WHOLE:
		FAULT(REQUEST_READ);
		conn_queue(c);
		break;
	case STEP_BLOCKED:
		conn_park(c, CONN_REPLYING);
		break;
	case STEP_FINISH:
		conn_finish(c);
		break;
	case STEP_DROP:
		conn_close(c);
		break;
	}
}
