/*
 * From bytes to a whole request: feeds the record layer.
 *
 * Nothing here waits for a peer.  Input that is read while a reply cannot be
 * sent, or after the end of a request, stays in conn->left.  No more is read
 * until it was fed.  One call feeds CONN_INPUT bytes at most, so that the other
 * connections are served as well.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "cginame.h"
#include "fault.h"
#include "log.h"
#include "uuid.h"

#include "conn.h"

static const char *
param_or_empty(const struct request *rq, const char *name)
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
why_invalid(const struct conn *c, const struct request *rq, enum rc path)
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
	enum rc rc;

	x->conf = conf_ref(c->mux->conf);
	uuid_urn(rq->instance);
	x->log.instance = rq->instance;
	rq->log = &x->log;
	rq->params = c->fcgi.params;
	rq->nparams = c->fcgi.nparams;
	rq->method = param_or_empty(rq, "REQUEST_METHOD");
	rq->query = param_or_empty(rq, "QUERY_STRING");
	x->log.method = request_param(rq, "REQUEST_METHOD");
	x->log.peer = request_param(rq, "REMOTE_ADDR");
	rq->body_fd = -1;
	rc = cginame_path(param_or_empty(rq, "SCRIPT_NAME"),
	    param_or_empty(rq, "PATH_INFO"), &x->path);
	if (rc == RC_NOMEM) {
		log_event(LOG_ERROR, "request-dropped", &x->log,
		    LOG_S("why", "no memory"));
		return false;
	}
	rq->path = x->log.path = x->path.data;
	if ((rq->invalid = why_invalid(c, rq, rc)) != NULL) {
		rq->path = "/";
		x->log.path = NULL;
		rq->body_state = BODY_WHOLE;
		x->discard = true;
		return true;
	}
	conn_body_begin(x);
	return true;
}

/* The peer aborted the request.  Before the parameters were complete, the only
 * answer is FCGI_END_REQUEST. */
static enum conn_step
conn_aborted(struct conn *c)
{
	unsigned char end[FCGI_END_SIZE];

	if (c->exchange.conf != NULL) {
		conn_body_spoil(&c->exchange, BODY_ABORTED);
		return CONN_WHOLE;
	}
	fcgi_end(c->fcgi.id, 0, end);
	if (buf_add(&c->fcgi.reply, end, sizeof(end)) != RC_OK)
		return CONN_DROP;
	c->fcgi.closing = !c->fcgi.keep_conn;
	fcgi_next(&c->fcgi);
	return CONN_MORE;
}

static enum conn_step
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
			return errno == EAGAIN ? CONN_BLOCKED : CONN_DROP;
		buf_consume(reply, (size_t)n);
	}
	buf_free(reply);
	return c->fcgi.closing ? CONN_FINISH : CONN_MORE;
}

/* Feeds input until an event needs attention; *taken is the number of bytes
 * that were fed. */
static enum conn_step
feed_input(struct conn *c, const char *data, size_t len, size_t *taken)
{
	enum conn_step step = CONN_MORE;
	size_t used;

	*taken = 0;
	while (step == CONN_MORE && *taken < len) {
		switch (
		    fcgi_feed(&c->fcgi, data + *taken, len - *taken, &used)) {
		case FCGI_EV_MORE:
		case FCGI_EV_REPLY:
			break;
		case FCGI_EV_HEAD:
			if (!conn_read_begin(c))
				step = CONN_DROP;
			break;
		case FCGI_EV_BODY:
			conn_body_add(
			    &c->exchange, c->fcgi.body, c->fcgi.body_len);
			break;
		case FCGI_EV_END:
			step = CONN_WHOLE;
			break;
		case FCGI_EV_ABORT:
			step = conn_aborted(c);
			break;
		case FCGI_EV_ERROR:
			log_event(LOG_WARN, "protocol-error", conn_log(c),
			    LOG_S("why", c->fcgi.why));
			step = CONN_DROP;
			break;
		}
		*taken += used;
		if (step == CONN_MORE && c->fcgi.reply.len > 0)
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

/* Feeds what is left of the input that was read before. */
static enum conn_step
feed_left(struct conn *c)
{
	enum conn_step step;
	size_t taken;

	step = feed_input(c, c->left.data, c->left.len, &taken);
	buf_consume(&c->left, taken);
	if (c->left.len == 0)
		buf_free(&c->left);
	return step;
}

static enum conn_step
read_some(struct conn *c)
{
	char *input = c->mux->input;
	enum conn_step step;
	size_t taken;
	ssize_t n;

	do
		n = recv(c->fd, input, CONN_INPUT, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN)
		return CONN_MORE;
	if (n <= 0) {
		log_gone(c, n == 0 ? "the peer closed" : strerror(errno));
		return CONN_DROP;
	}
	step = feed_input(c, input, (size_t)n, &taken);
	assert(step != CONN_MORE || taken == (size_t)n);
	if ((step == CONN_WHOLE || step == CONN_BLOCKED) &&
	    buf_add(&c->left, input + taken, (size_t)n - taken) != RC_OK)
		return CONN_DROP;
	return step;
}

void
conn_go(struct conn *c, enum conn_step step)
{
	switch (step) {
	case CONN_MORE:
		conn_park(c, CONN_READING);
		break;
	case CONN_WHOLE:
		conn_body_end(&c->exchange);
		FAULT(REQUEST_READ);
		conn_give(c);
		break;
	case CONN_BLOCKED:
		conn_park(c, CONN_REPLYING);
		break;
	case CONN_FINISH:
		conn_finish(c);
		break;
	case CONN_DROP:
		conn_close(c);
		break;
	}
}

void
conn_read(struct conn *c)
{
	enum conn_step step = CONN_MORE;

	loop_doing("connection");
	if (c->fcgi.reply.len > 0)
		step = flush_reply(c);
	if (step == CONN_MORE)
		step = c->left.len > 0 ? feed_left(c) : read_some(c);
	if (!conn_body_writes(c, step))
		conn_go(c, step);
}
