/*
 * The words of the tests of mux: real sockets on one side, and on the other
 * the test itself, which owns mux and makes the rounds of its loop.  Whatever a
 * peer waits for, it makes rounds meanwhile; so one thread does for all.
 *
 * That something is not delivered is shown by a later request that is.
 * Included by tests only.
 */
#ifndef MUX_FIXTURE_H
#define MUX_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cases.h"
#include <fastcgi.h>

#include "clock.h"
#include "conf_fixture.h"
#include "exchange.h"
#include "fcgi.h"
#include "limit.h"
#include "log.h"
#include "mux.h"

/* The most at once. */
#define CONNECTIONS 200

static struct loop *loop;
static struct mux *mux;
static struct helpers *helpers; /* for the next start() */
static bool helper_is_free;
static int listener;

/* The requests that mux has given, and that no test has taken yet. */
static struct exchange *taken[CONNECTIONS];
static size_t ntaken;
/* Each is answered in the call that gives it; this many were. */
static bool answers_at_once;
static unsigned answered;
/* What mux has told: R, S, C. */
static char told[8];

/* What large bodies and answers are made of; none of it repeats soon. */
static char bytes[8 << 20];

static struct sockaddr_storage address;
static socklen_t address_len;

/* --- the daemon's side --- */

static void
listen_somewhere(bool tcp)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	listener = socket(tcp ? AF_INET : AF_UNIX,
	    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A unix socket gets an abstract name from the kernel. */
	assert_int_equal(tcp
		? bind(listener, (struct sockaddr *)&in, sizeof(in))
		: bind(listener, (struct sockaddr *)&un, sizeof(sa_family_t)),
	    0);
	assert_int_equal(listen(listener, SOMAXCONN), 0);
	address_len = sizeof(address);
	assert_int_equal(
	    getsockname(listener, (struct sockaddr *)&address, &address_len),
	    0);
}

static void
answer_text(struct exchange *x, const char *text)
{
	struct answer a;

	answer_init(&a);
	a.response.status = 200;
	assert_ok(response_add(&a.response, "Content-Type", "text/plain"));
	assert_ok(buf_adds(&a.text, text));
	a.response.body = a.text.data;
	a.response.body_len = a.text.len;
	exchange_answer(x, &a);
	assert_null(a.response.body);
}

/* The head that answer_text() makes. */
#define HEAD_200 "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n"

static void
answer_bytes(struct exchange *x, size_t len)
{
	struct answer a;

	answer_init(&a);
	a.response.status = 200;
	a.response.body = bytes;
	a.response.body_len = len;
	exchange_answer(x, &a);
}

#define BARE_HEAD "Status: 200 OK\r\n\r\n"

static void
take(UNUSED void *arg, struct exchange *x)
{
	assert_true(ntaken < COUNT(taken));
	if (!answers_at_once) {
		taken[ntaken++] = x;
		return;
	}
	answered++;
	answer_text(x, exchange_request(x)->query);
}

static void
tell(UNUSED void *arg, enum mux_event event)
{
	told[strlen(told)] = "RSC"[event];
}

static const struct mux_owner *
owner(void)
{
	static struct mux_owner o;

	o = (struct mux_owner){ .loop = loop,
		.helpers = helpers,
		.connections = CONNECTIONS,
		.take = take,
		.told = tell };
	return &o;
}

static void
start_on(const char *conf, bool tcp)
{
	struct conf *first = conf_from(conf);

	listen_somewhere(tcp);
	assert_ok(mux_open(&mux, owner(), first, listener));
	conf_unref(first);
}

static void
start(const char *conf)
{
	start_on(conf, false);
}

/* A round, which waits a little if there is nothing to do. */
static void
serve(void)
{
	loop_round(loop, clock_mono() + 10);
}

/* How many rounds there were in that time (ms): each waits if it can. */
static int
serve_for(int ms)
{
	const int64_t until = clock_mono() + ms;
	int rounds = 0;

	for (; clock_mono() < until; rounds++)
		loop_round(loop, until);
	return rounds;
}

/* What was sent is read, as far as it will be. */
static void
settle(void)
{
	for (int i = 0; i < 20; i++)
		loop_round(loop, 0);
}

/* The next request. */
static struct exchange *
next_of_any(void)
{
	struct exchange *x;

	while (ntaken == 0)
		serve();
	x = taken[0];
	memmove(taken, taken + 1, --ntaken * sizeof(taken[0]));
	return x;
}

/* The next request, which must be the one with that query. */
static struct exchange *
next(const char *query)
{
	struct exchange *x = next_of_any();

	assert_string_equal(exchange_request(x)->query, query);
	return x;
}

/* --- the web server's side --- */

/* The connections of a test; the end of it closes those that are left. */
static int dialled[CONNECTIONS + 100];
static size_t ndialled;

static int
dial_unlisted(void)
{
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd != -1);
	assert_int_equal(
	    connect(fd, (struct sockaddr *)&address, address_len), 0);
	return fd;
}

static int
dial(void)
{
	int fd = dial_unlisted();

	assert_true(ndialled < COUNT(dialled));
	dialled[ndialled++] = fd;
	loop_round(loop, 0); /* it waits in no backlog */
	return fd;
}

static void
hang_up(int fd)
{
	for (size_t i = ndialled; i-- > 0;)
		if (dialled[i] == fd) {
			dialled[i] = dialled[--ndialled];
			break;
		}
	close(fd);
}

/* Starts, and connects the first peer. */
static int
start_and_dial(const char *conf)
{
	start(conf);
	return dial();
}

static int
begin(UNUSED void **state)
{
	memset(told, 0, sizeof(told));
	ntaken = 0;
	answers_at_once = false;
	answered = 0;
	return loop_open(&loop);
}

static void
do_nothing(UNUSED struct helpers_task *t)
{
}

static void
last_done(UNUSED struct helpers_task *t)
{
	helper_is_free = true;
}

static int
finish(UNUSED void **state)
{
	const int64_t until = clock_mono() + 5000;
	/* The one helper does it after all others. */
	struct helpers_task last = { .work = do_nothing, .done = last_done };

	while (ndialled > 0)
		close(dialled[--ndialled]);
	while (ntaken > 0)
		exchange_end(taken[--ntaken], 0, true);
	if (mux != NULL) {
		if (strchr(told, 'C') == NULL)
			mux_close(mux, clock_mono());
		while (strchr(told, 'C') == NULL && clock_mono() < until)
			serve();
		/* A test that has failed may have kept an exchange. */
		if (strchr(told, 'C') == NULL)
			return -1;
		mux_free(mux);
	}
	mux = NULL;
	close(listener);
	if (helpers != NULL) {
		helpers_ask(helpers, &last);
		for (helper_is_free = false; !helper_is_free;)
			serve();
	}
	helpers_close(helpers);
	helpers = NULL;
	loop_close(loop);
	return spool_setup(NULL, UINT64_MAX) == RC_OK ? 0 : -1;
}

AROUND_EACH(begin, finish)

/* As if another test began. */
static void
again(void)
{
	assert_int_equal(finish(NULL), 0);
	assert_int_equal(begin(NULL), 0);
}

static void
add_record(struct buf *b, int type, int id, const void *content, size_t len)
{
	unsigned char header[8] = { 1, (unsigned char)type,
		(unsigned char)(id >> 8), (unsigned char)id,
		(unsigned char)(len >> 8), (unsigned char)len, 0, 0 };

	assert_ok(buf_add(b, header, 8));
	assert_ok(buf_add(b, content, len));
}

static void
add_begin(struct buf *b, int id, bool keep)
{
	unsigned char body[8] = { 0, FCGI_RESPONDER, keep };

	add_record(b, FCGI_BEGIN_REQUEST, id, body, 8);
}

static void
add_param_n(struct buf *b, const char *name, const char *value, size_t len)
{
	char lengths[5] = { (char)strlen(name), (char)(0x80 | len >> 24),
		(char)(len >> 16), (char)(len >> 8), (char)len };
	struct buf raw;

	buf_init(&raw, 1 << 16);
	buf_add(&raw, lengths, 5);
	buf_adds(&raw, name);
	buf_add(&raw, value, len);
	add_record(b, FCGI_PARAMS, 1, raw.data, raw.len);
	buf_free(&raw);
}

static void
add_param(struct buf *b, const char *name, const char *value)
{
	add_param_n(b, name, value, strlen(value));
}

static void
add_body(struct buf *b, const char *body, size_t len)
{
	while (len > 0) {
		size_t n = len < 60000 ? len : 60000;

		add_record(b, FCGI_STDIN, 1, body, n);
		body += n;
		len -= n;
	}
}

/* The parameters of a request, and not their end. */
static void
open_params(struct buf *b, bool keep, const char *method, const char *query,
    const char *length)
{
	buf_init(b, 1 << 25);
	add_begin(b, 1, keep);
	add_param(b, "REQUEST_METHOD", method);
	add_param(b, "SCRIPT_NAME", "/app");
	add_param(b, "PATH_INFO", "/x");
	add_param(b, "QUERY_STRING", query);
	if (length != NULL)
		add_param(b, "CONTENT_LENGTH", length);
}

/* All of a request but its body and the end of that. */
static void
open_request(struct buf *b, bool keep, const char *method, const char *query,
    const char *length)
{
	open_params(b, keep, method, query, length);
	add_record(b, FCGI_PARAMS, 1, "", 0);
}

static void
put(int fd, const struct buf *b)
{
	size_t pos = 0;

	while (pos < b->len) {
		ssize_t n = send(fd, b->data + pos, b->len - pos,
		    MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		if (n > 0)
			pos += (size_t)n;
		else
			serve();
	}
}

/* Sends the buffer and frees it. */
static void
put_all(int fd, struct buf *b)
{
	put(fd, b);
	buf_free(b);
}

/* Sends the buffer with that body behind it, and frees it. */
static void
put_with(int fd, struct buf *b, const char *body, size_t len)
{
	add_body(b, body, len);
	add_record(b, FCGI_STDIN, 1, "", 0);
	put_all(fd, b);
}

static void
ask(int fd, bool keep, const char *method, const char *query)
{
	struct buf b;

	open_request(&b, keep, method, query, NULL);
	put_with(fd, &b, "", 0);
}

struct reply {
	struct buf out; /* STDOUT; of other records the bytes */
	bool ended;
	unsigned app_status;
};

/* Like recv(2) of one that waits. */
static ssize_t
get_some(int fd, void *p, size_t len)
{
	ssize_t n;

	while ((n = recv(fd, p, len, MSG_DONTWAIT)) == -1 && errno == EAGAIN)
		serve();
	return n;
}

static bool
get(int fd, void *p, size_t len)
{
	size_t pos = 0;

	while (pos < len) {
		ssize_t n = get_some(fd, (char *)p + pos, len - pos);

		if (n <= 0)
			return false;
		pos += (size_t)n;
	}
	return true;
}

/* Reads records until the end of the request, or of the connection. */
static void
receive(int fd, struct reply *r)
{
	unsigned char h[8], content[65536 + 256];
	size_t len;

	buf_init(&r->out, 1 << 25);
	r->ended = false;
	r->app_status = 0;
	while (!r->ended && get(fd, h, 8)) {
		assert_int_equal(h[0], 1);
		len = (size_t)h[4] << 8 | h[5];
		assert_int_equal((len + h[6]) % 8, 0);
		if (!get(fd, content, len + h[6]))
			return;
		if (h[1] == FCGI_END_REQUEST) {
			assert_int_equal(len, 8);
			assert_int_equal(content[4], FCGI_REQUEST_COMPLETE);
			r->ended = true;
			r->app_status = (unsigned)content[0] << 24 |
			    (unsigned)content[1] << 16 |
			    (unsigned)content[2] << 8 | content[3];
		} else {
			assert_int_equal(h[1], FCGI_STDOUT);
			assert_int_equal(h[2] << 8 | h[3], 1);
			assert_ok(buf_add(&r->out, content, len));
		}
	}
}

/* The answer must be head, and these bytes. */
static void
expect_bytes(int fd, const char *head, const void *rest, size_t len)
{
	struct reply r;

	receive(fd, &r);
	assert_true(r.ended);
	assert_int_equal(r.app_status, 0);
	assert_int_equal(r.out.len, strlen(head) + len);
	assert_memory_equal(r.out.data, head, strlen(head));
	assert_memory_equal(r.out.data + strlen(head), rest, len);
	buf_free(&r.out);
}

static void
expect(int fd, const char *out)
{
	expect_bytes(fd, out, "", 0);
}

static void
expect_closed(int fd)
{
	char c;

	assert_int_equal(get_some(fd, &c, 1), 0);
	hang_up(fd);
}

/* Answers a request with its query. */
static void
answer_query(int fd, const char *query)
{
	answer_text(next(query), query);
	expect_bytes(fd, HEAD_200, query, strlen(query));
}

/* A whole round on a connection. */
static void
round_trip(int fd, bool keep, const char *query)
{
	ask(fd, keep, "GET", query);
	answer_query(fd, query);
}

/* A round on a new connection, which is closed after it. */
static void
round_trip_alone(const char *query)
{
	int fd = dial();

	round_trip(fd, false, query);
	expect_closed(fd);
}

/* A whole request, with the body that is sent for what is declared. */
static void
post(int fd, bool keep, const char *query, const char *length, const char *body,
    size_t len)
{
	struct buf b;

	open_request(&b, keep, "POST", query, length);
	put_with(fd, &b, body, len);
}

/* Starts, and the first peer asks; returns the request as the owner has it. */
static struct exchange *
asked(const char *conf, int *fd, bool keep, const char *method)
{
	*fd = start_and_dial(conf);
	ask(*fd, keep, method, "q");
	return next("q");
}

/* The last answer of the connection. */
static void
expect_last(int fd, const char *out)
{
	expect(fd, out);
	expect_closed(fd);
}

/* Answers, and the peer gets that. */
static void
finish_request(struct exchange *x, int fd)
{
	answer_text(x, "");
	expect(fd, HEAD_200);
}

#endif
