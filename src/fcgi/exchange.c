/*
 * Sends an answer as FastCGI records, or a handler's output as it comes: as
 * much as the peer takes at once, and the rest when it takes more.
 *
 * An answer is never copied.  A full STDOUT record is FCGI_CONTENT_MAX bytes
 * and its header, 64 KiB without padding.  So the position in the records
 * follows from the number of bytes sent, and no other state is needed.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fault.h"
#include "log.h"

#include "conn.h"
#include "exchange.h"

#define RECORD_SIZE (FCGI_HEADER_SIZE + FCGI_CONTENT_MAX)
_Static_assert(RECORD_SIZE % 8 == 0, "a full record needs no padding");

/* Records of one sendmsg(2): more than a socket's buffer takes at once. */
#define BATCH 8
/* So many of these follow each other, before other peers have their turn: this
 * one may read as fast as it is sent to. */
#define BATCHES 4
/* Parts of a record: header, head, body, padding. */
#define PARTS 4

static const unsigned char padding[8];

/* A stretch of the records, as sendmsg() takes it. */
struct batch {
	struct iovec iov[BATCH * PARTS + 1];
	size_t n;
	size_t skip; /* bytes of the next parts that were already sent */
	unsigned char header[BATCH][FCGI_HEADER_SIZE];
	unsigned char end[FCGI_END_SIZE];
};

static void
batch_add(struct batch *b, const void *data, size_t len)
{
	if (b->skip >= len) {
		b->skip -= len;
		return;
	}
	assert(b->n < sizeof(b->iov) / sizeof(b->iov[0]));
	/* sendmsg() only reads, but the type of iov_base is not const */
	memcpy(&b->iov[b->n].iov_base, &data, sizeof(data));
	b->iov[b->n].iov_base = (char *)b->iov[b->n].iov_base + b->skip;
	b->iov[b->n].iov_len = len - b->skip;
	b->skip = 0;
	b->n++;
}

/* Adds the bytes [from, from + len) of head and body, which follow each
 * other. */
static void
batch_content(
    struct batch *b, const struct exchange *x, uint64_t from, size_t len)
{
	size_t n = 0;

	if (from < x->head.len) {
		n = x->head.len - (size_t)from;
		if (n > len)
			n = len;
		batch_add(b, x->head.data + from, n);
	}
	if (len > n)
		batch_add(b,
		    (const char *)x->answer.response.body +
			(from + n - x->head.len),
		    len - n);
}

/* Makes the batch that follows x->sent; it is empty if all was sent. */
static void
batch_make(struct batch *b, const struct exchange *x)
{
	uint64_t total = (uint64_t)x->head.len + x->body_len, from;
	uint64_t full = total / FCGI_CONTENT_MAX;
	uint64_t record = x->sent / RECORD_SIZE;
	size_t len, pad, i;

	if (record > full) /* within the end */
		record = full;
	b->n = 0;
	b->skip = (size_t)(x->sent - record * RECORD_SIZE);
	for (i = 0; i < BATCH; i++, record++) {
		from = record * FCGI_CONTENT_MAX;
		len = FCGI_CONTENT_MAX;
		if (total - from < len)
			len = (size_t)(total - from);
		if (len > 0) {
			pad = fcgi_stdout_header(
			    x->conn->fcgi.id, len, b->header[i]);
			batch_add(b, b->header[i], FCGI_HEADER_SIZE);
			batch_content(b, x, from, len);
			batch_add(b, padding, pad);
		}
		if (record == full) {
			fcgi_end(
			    x->conn->fcgi.id, (uint32_t)x->app_status, b->end);
			batch_add(b, b->end, sizeof(b->end));
			return;
		}
	}
}

/* Sends once: how many bytes the peer has taken, or -1. */
static ssize_t
send_iov(const struct exchange *x, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	do
		sent = sendmsg(x->conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent == -1 && errno == EINTR);
	return sent;
}

static enum rc
send_unsent(struct exchange *x)
{
	struct iovec iov;
	ssize_t n;

	while (x->unsent.len > 0) {
		iov = (struct iovec){ .iov_base = x->unsent.data,
			.iov_len = x->unsent.len };
		n = send_iov(x, &iov, 1);
		if (n == -1)
			return errno == EAGAIN ? RC_PENDING : RC_CLOSED;
		buf_consume(&x->unsent, (size_t)n);
	}
	buf_free(&x->unsent);
	return RC_OK;
}

static enum rc
send_answer(struct exchange *x)
{
	struct batch b;
	enum rc rc;
	ssize_t n;

	if ((rc = send_unsent(x)) != RC_OK)
		return rc;
	for (int i = 0; i < BATCHES; i++) {
		batch_make(&b, x);
		if (b.n == 0)
			return RC_OK;
		n = send_iov(x, b.iov, b.n);
		if (n == -1)
			return errno == EAGAIN ? RC_PENDING : RC_CLOSED;
		x->sent += (uint64_t)n;
		FAULT(ANSWER_SENT);
	}
	return RC_PENDING;
}

/* Sends the answer, or what the peer did not take of it at once. */
static void
go_on_sending(struct exchange *x)
{
	switch (send_answer(x)) {
	case RC_OK:
		conn_next(x->conn);
		return;
	case RC_PENDING:
		conn_park(x->conn, CONN_SENDING);
		return;
	default:
		/* After a stream there is only the end to send.  lighttpd
		 * closes before that if it has read Content-Length bytes. */
		if (x->head.len + x->body_len > 0)
			log_event(LOG_INFO, "answer-not-taken", &x->log,
			    LOG_S("why", strerror(errno)));
		conn_close(x->conn);
	}
}

/* --- streams --- */

static enum rc
stream_broken(struct exchange *x, enum rc why)
{
	buf_free(&x->unsent);
	if (!x->broken)
		log_event(LOG_INFO, "answer-not-taken", &x->log,
		    LOG_S("why", rc_text(why)));
	x->broken = true;
	return RC_CLOSED;
}

/* The stream's owner goes on. */
static void
call_room(struct exchange *x)
{
	void (*room)(void *arg) = x->room;

	x->room = NULL;
	if (room != NULL)
		room(x->room_arg);
}

/* Waits until the peer takes what is unsent. */
static enum rc
stream_wait(struct exchange *x)
{
	if (x->conn->mux->hasty)
		return stream_broken(x, RC_TIMEOUT);
	if (!conn_wait(x->conn, CONN_STREAMING))
		return stream_broken(x, RC_NOMEM);
	return RC_PENDING;
}

static void
go_on_streaming(struct exchange *x)
{
	enum rc rc = send_unsent(x);

	if (rc == RC_PENDING)
		rc = stream_wait(x);
	else if (rc != RC_OK)
		rc = stream_broken(x, rc);
	if (rc != RC_PENDING)
		call_room(x);
}

void
exchange_give_up(struct exchange *x)
{
	conn_take(x->conn);
	(void)stream_broken(x, RC_TIMEOUT);
	call_room(x);
}

void
exchange_send(struct exchange *x)
{
	if (x->conn->state == CONN_STREAMING)
		go_on_streaming(x);
	else
		go_on_sending(x);
}

/* --- for the owner --- */

struct request *
exchange_request(struct exchange *x)
{
	return &x->request;
}

const struct conf *
exchange_conf(const struct exchange *x)
{
	return x->conf;
}

void
exchange_answer(struct exchange *x, struct answer *answer)
{
	enum rc rc;

	FAULT(ANSWER_READY);
	x->answer = *answer;
	answer_init(answer);
	rc = response_head(&x->answer.response, &x->head);
	if (rc != RC_OK) {
		log_event(LOG_ERROR, "answer-dropped", &x->log,
		    LOG_S("why", rc_text(rc)));
		conn_close(x->conn);
		return;
	}
	/* RFC 3875, section 4.3.3: the response to HEAD has no body. */
	if (strcmp(x->request.method, "HEAD") != 0)
		x->body_len = x->answer.response.body_len;
	go_on_sending(x);
}

/* Makes one record, of which some bytes were sent. */
static void
batch_record(struct batch *b, const struct exchange *x, const char *data,
    size_t len, size_t skip)
{
	const size_t pad =
	    fcgi_stdout_header(x->conn->fcgi.id, len, b->header[0]);

	b->n = 0;
	b->skip = skip;
	batch_add(b, b->header[0], FCGI_HEADER_SIZE);
	batch_add(b, data, len);
	batch_add(b, padding, pad);
}

/* Sends one record, if nothing is unsent, and holds the rest of it. */
static enum rc
write_record(struct exchange *x, const char *data, size_t len)
{
	struct batch b;
	ssize_t sent = 0;
	enum rc rc = RC_OK;

	batch_record(&b, x, data, len, 0);
	if (x->unsent.len == 0)
		sent = send_iov(x, b.iov, b.n);
	if (sent == -1 && errno != EAGAIN)
		return RC_CLOSED;
	batch_record(&b, x, data, len, sent > 0 ? (size_t)sent : 0);
	for (size_t i = 0; i < b.n && rc == RC_OK; i++)
		rc = buf_add(&x->unsent, b.iov[i].iov_base, b.iov[i].iov_len);
	return rc;
}

enum rc
exchange_write(struct exchange *x, const void *data, size_t len)
{
	const char *p = data;
	enum rc rc;
	size_t n;

	assert(len <= ANSWER_PART && x->conn->list == NULL);
	if (x->broken)
		return RC_CLOSED;
	for (; len > 0; p += n, len -= n) {
		n = len < FCGI_CONTENT_MAX ? len : FCGI_CONTENT_MAX;
		if ((rc = write_record(x, p, n)) != RC_OK)
			return stream_broken(x, rc);
	}
	return x->unsent.len > 0 ? stream_wait(x) : RC_OK;
}

void
exchange_on_room(struct exchange *x, void (*room)(void *arg), void *arg)
{
	assert(x->conn->list != NULL && x->conn->state == CONN_STREAMING);
	x->room = room;
	x->room_arg = arg;
}

void
exchange_end(struct exchange *x, int app_status, bool broken)
{
	conn_take(x->conn);
	x->room = NULL;
	if (broken || x->broken) {
		conn_close(x->conn);
		return;
	}
	x->app_status = app_status;
	go_on_sending(x);
}
