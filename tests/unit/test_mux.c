/*
 * mux: real sockets on one side, and on the other the test itself, which owns
 * mux and makes the rounds of its loop.  Whatever a peer waits for, it makes
 * rounds meanwhile; so one thread does for all.
 *
 * That something is not delivered is shown by a later request that is.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static enum rc
reload(const char *conf)
{
	struct conf *new = conf_from(conf);
	struct peers peers;
	enum rc rc = mux_peers(new, &peers);

	if (rc == RC_OK)
		mux_reload(mux, new, &peers);
	conf_unref(new);
	return rc;
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

/* Until mux has told that. */
static void
serve_until(const char *want)
{
	while (strlen(told) < strlen(want))
		serve();
	assert_string_equal(told, want);
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

/* A new connection asks; returns the request as the owner has it. */
static struct exchange *
asked_by(int *fd, bool keep, const char *query)
{
	*fd = dial();
	ask(*fd, keep, "GET", query);
	return next(query);
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

/* A socket behind which no descriptor is left; the limit was *old. */
static int
last_descriptor(struct rlimit *old)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlimit low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, old), 0);
	low = *old;
	low.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	return fd;
}

/* --- requests --- */

TEST(request_arrives_whole)
{
	const struct request *rq;
	struct exchange *x;
	int fd = start_and_dial("");

	post(fd, false, "a=b", "5", "hello", 5);
	x = next("a=b");
	rq = exchange_request(x);
	assert_non_null(exchange_conf(x));
	assert_string_equal(rq->method, "POST");
	assert_string_equal(rq->path, "/app/x");
	assert_int_equal(rq->nparams, 5);
	assert_string_equal(rq->params[0].name, "REQUEST_METHOD");
	assert_int_equal(rq->body_state, BODY_WHOLE);
	assert_int_equal(rq->body_len, 5);
	assert_memory_equal(rq->body, "hello", 5);
	assert_int_equal(rq->body_fd, -1);
	assert_int_equal(strlen(rq->instance), 45);
	assert_memory_equal(rq->instance, "urn:uuid:", 9);
	assert_int_equal(rq->instance[23], '4');
	assert_non_null(strchr("89ab", rq->instance[28]));
	answer_text(x, "done");
	expect_last(fd, HEAD_200 "done");
}

/* --- bodies --- */

#define GUARDED "[route /app]\nkey = required\nmax_request_body = 1K\n"

TEST(body_against_its_length)
{
	static const struct {
		const char *name, *length, *again;
		size_t sent;
		enum body_state want;
	} rows[] = {
		{ "as long as said", "5", NULL, 5, BODY_WHOLE },
		{ "leading zeros", "0005", NULL, 5, BODY_WHOLE },
		{ "none said, some sent", NULL, NULL, 5, BODY_WHOLE },
		{ "empty counts as absent", "", NULL, 5, BODY_WHOLE },
		{ "none said, none sent", NULL, NULL, 0, BODY_WHOLE },
		{ "zero said, none sent", "0", NULL, 0, BODY_WHOLE },
		{ "zero said, some sent", "0", NULL, 1, BODY_MISMATCH },
		{ "shorter", "6", NULL, 5, BODY_MISMATCH },
		{ "longer", "4", NULL, 5, BODY_MISMATCH },
		{ "some said, none sent", "4", NULL, 0, BODY_MISMATCH },
		{ "sign", "+5", NULL, 5, BODY_BAD_LENGTH },
		{ "negative", "-5", NULL, 5, BODY_BAD_LENGTH },
		{ "blank", "5 ", NULL, 5, BODY_BAD_LENGTH },
		{ "list", "5, 5", NULL, 5, BODY_BAD_LENGTH },
		{ "2 to the 64", "18446744073709551616", NULL, 5,
		    BODY_BAD_LENGTH },
		{ "wraps to 5", "18446744073709551621", NULL, 5,
		    BODY_BAD_LENGTH },
		{ "twice the same", "5", "5", 5, BODY_WHOLE },
		{ "twice, not the same", "5", "6", 5, BODY_BAD_LENGTH },
		{ "at the limit", "1024", NULL, 1024, BODY_WHOLE },
		{ "above by what is said", "1025", NULL, 3, BODY_TOO_LARGE },
		{ "above by what is sent", NULL, NULL, 1025, BODY_TOO_LARGE },
		{ "far above", "3000000", NULL, 3000000, BODY_TOO_LARGE },
	};
	int fd = start_and_dial(GUARDED);

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct request *rq;
		struct exchange *x;
		struct buf b;

		open_params(&b, true, "POST", rows[i].name, rows[i].length);
		if (rows[i].again != NULL)
			add_param(&b, "CONTENT_LENGTH", rows[i].again);
		add_record(&b, FCGI_PARAMS, 1, "", 0);
		put_with(fd, &b, bytes, rows[i].sent);

		x = next(rows[i].name);
		rq = exchange_request(x);
		if (rq->body_state != rows[i].want)
			fail_msg("%s: %d", rows[i].name, rq->body_state);
		assert_int_equal(rq->body_len,
		    rows[i].want == BODY_WHOLE ? rows[i].sent : 0);
		assert_true((rq->body != NULL) == (rq->body_len > 0));
		finish_request(x, fd);
	}
}

/* Where a size has 32 bits, also of a request that is not guarded. */
TEST(a_length_that_no_memory_has_is_too_large)
{
	const enum body_state want =
	    SIZE_MAX > UINT32_MAX ? BODY_MISMATCH : BODY_TOO_LARGE;
	struct exchange *x;
	struct buf b;
	int fd = start_and_dial("");

	open_request(&b, true, "GET", "large", "4294967301");
	put_with(fd, &b, "hello", 5);
	x = next("large");
	assert_int_equal(exchange_request(x)->body_state, want);
	assert_int_equal(exchange_request(x)->body_len, 0);
	finish_request(x, fd);
}

TEST(body_that_has_no_place_is_drained)
{
	enum { SIZE = 300000 };
	static const struct {
		const char *dir;
		uint64_t total;
		enum body_state want;
	} rows[] = {
		{ "/no/such/directory", UINT64_MAX, BODY_UNSTORABLE },
		{ NULL, SIZE - 1, BODY_NO_ROOM },
	};
	struct exchange *x;
	int fd;

	start("");
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_ok(spool_setup(rows[i].dir, rows[i].total));
		fd = dial();
		post(fd, true, "q", "300000", bytes, SIZE);
		x = next("q");
		assert_int_equal(exchange_request(x)->body_state, rows[i].want);
		assert_null(exchange_request(x)->body);
		assert_true(spool_has_room(SIZE - 1));
		finish_request(x, fd);
		round_trip(fd, true, "next");
	}
}

/* --- what is no request --- */

TEST(malformed_requests_are_invalid)
{
	static const char *const why[] = { "too long", "REQUEST_METHOD", "NUL",
		"two values", "PATH_INFO" };
	static char long_path[LIMIT_PATH + 100];
	int fd;

	memset(long_path, 'p', sizeof(long_path) - 1);
	long_path[0] = '/';
	start(GUARDED);
	fd = dial();
	for (size_t i = 0; i < COUNT(why); i++) {
		const struct request *rq;
		struct exchange *x;
		struct buf b;

		buf_init(&b, 1 << 20);
		add_begin(&b, 1, true);
		add_param(&b, "QUERY_STRING", "q");
		add_param(&b, "SCRIPT_NAME", i == 0 ? long_path : "/app");
		if (i != 1)
			add_param(&b, "REQUEST_METHOD", "POST");
		if (i == 2)
			add_param_n(&b, "HTTP_X", "a\0b", 3);
		if (i == 3)
			add_param(&b, "REQUEST_METHOD", "GET");
		if (i == 4)
			add_param(&b, "PATH_INFO", "/../pay");
		add_record(&b, FCGI_PARAMS, 1, "", 0);
		put_with(fd, &b, "ignored", 7);
		x = next("q");
		rq = exchange_request(x);
		assert_non_null(strstr(rq->invalid, why[i]));
		assert_string_equal(rq->path, "/");
		assert_int_equal(rq->body_state, BODY_WHOLE);
		assert_null(rq->body);
		finish_request(x, fd);
	}
}

/* It is not kept: refused, and closed, without a reset though more comes. */
TEST(a_refusal_is_sent_whole)
{
	static const unsigned char role[16] = { 1, FCGI_END_REQUEST, 0, 1, 0, 8,
		0, 0, 0, 0, 0, 0, FCGI_UNKNOWN_ROLE };
	static const char more[20000];
	unsigned char got[16], authorizer[8] = { 0, FCGI_AUTHORIZER };
	struct buf b;
	int fd = start_and_dial("");

	buf_init(&b, 1 << 20);
	add_record(&b, FCGI_BEGIN_REQUEST, 1, authorizer, 8);
	for (int i = 0; i < 4; i++)
		add_record(&b, FCGI_PARAMS, 1, more, sizeof(more));
	put_all(fd, &b);
	assert_true(get(fd, got, 16));
	assert_memory_equal(got, role, 16);
	expect_closed(fd);
}

/* A peer that asks and does not read the replies is not read from either;
 * once it reads, it gets every one. */
TEST(replies_not_read_stop_the_reading)
{
	static const unsigned char ask_type[8] = { 1, 77 };
	struct buf b;
	size_t asked = 0, pos = 0, quiet = 0;
	unsigned char got[16];
	ssize_t n;
	int fd = start_and_dial("");

	buf_init(&b, 1 << 20);
	for (int i = 0; i < 4096; i++)
		buf_add(&b, ask_type, 8);
	for (;;) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };

		n = send(fd, b.data + pos, b.len - pos, MSG_DONTWAIT);
		if (n > 0) {
			asked += (size_t)n;
			pos = (pos + (size_t)n) % b.len;
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		settle();
		if (poll(&pfd, 1, 0) == 0 && ++quiet == 10)
			break;
	}
	assert_true(asked > 0);
	for (size_t i = 0; i < asked / 8; i++) {
		assert_true(get(fd, got, 16));
		assert_int_equal(got[1], FCGI_UNKNOWN_TYPE);
		assert_int_equal(got[8], 77);
	}
	/* the rest of a record that was cut */
	if (asked % 8 != 0) {
		assert_int_equal(
		    send(fd, ask_type + asked % 8, 8 - asked % 8, 0),
		    8 - asked % 8);
		assert_true(get(fd, got, 16));
	}
	round_trip(fd, true, "after");
	buf_free(&b);
}

/* --- peers that keep others waiting --- */

TEST(stalled_in_mid_request_is_dropped_idle_is_not)
{
	int silent, kept, stalled[3];
	struct buf b;

	start("[server]\nio_timeout = 100ms\n");
	silent = dial();
	kept = dial();
	round_trip(kept, true, "kept");
	for (int i = 0; i < 3; i++) {
		stalled[i] = dial();
		open_request(&b, true, "POST", "stalled", "10");
		if (i < 2)
			buf_truncate(&b, i == 0 ? 1 : 30);
		put_all(stalled[i], &b);
	}
	for (int i = 0; i < 3; i++)
		expect_closed(stalled[i]);
	round_trip(silent, true, "silent");
	round_trip(kept, true, "kept");
}

/* Sends b[from, to) with a pause (ms) after each byte; whether the peer took
 * them all. */
static bool
trickle(int fd, const struct buf *b, size_t from, size_t to, int pause)
{
	for (; from < to; from++) {
		if (send(fd, b->data + from, 1, MSG_NOSIGNAL) != 1)
			return false;
		(void)serve_for(pause);
	}
	return true;
}

TEST(trickling_is_progress_in_a_body)
{
	struct buf b;
	int64_t began;
	size_t head;
	int fd = start_and_dial("[server]\nio_timeout = 2s\n");

	open_request(&b, false, "POST", "q", "1");
	head = b.len;
	add_body(&b, "x", 1);
	add_record(&b, FCGI_STDIN, 1, "", 0);
	began = clock_mono();
	assert_int_equal(send(fd, b.data, head, MSG_NOSIGNAL), head);
	assert_true(trickle(fd, &b, head, head + 5, 500));
	assert_true(clock_mono() - began > 2000);
	assert_int_equal(
	    send(fd, b.data + head + 5, b.len - head - 5, MSG_NOSIGNAL),
	    b.len - head - 5);
	buf_free(&b);
	answer_text(next("q"), "");
	expect(fd, HEAD_200);
}

/* ... and not before it: each byte came in time, all of them took too long. */
TEST(trickling_parameters_are_dropped_after_io_timeout)
{
	char query[10001] = "", c;
	struct buf b;
	int64_t began;
	int fd;

	memset(query, 'q', sizeof(query) - 1);
	start("[server]\nio_timeout = 150ms\n");
	for (int i = 0; i < 2; i++) {
		fd = dial();
		if (i == 1)
			round_trip(fd, true, "kept");
		open_request(&b, true, "GET", query, NULL);
		began = clock_mono();
		assert_false(trickle(fd, &b, 0, b.len, 5));
		assert_true(clock_mono() - began >= 150);
		buf_free(&b);
		/* A byte that came after the last read makes it a reset. */
		assert_true(get_some(fd, &c, 1) <= 0);
		hang_up(fd);
	}
}

/* --- answers --- */

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

TEST(answers_of_every_size)
{
	static const size_t records[] = { 0, 1, 2, 7, 8, 9, 16, 17, 40 };
	static const int around[] = { -24, -9, -8, -7, -1, 0, 1, 7, 8, 9 };
	const long head = (long)strlen(BARE_HEAD);
	int fd = start_and_dial("");

	for (size_t i = 0; i < COUNT(records) * COUNT(around); i++) {
		long total =
		    (long)records[i / COUNT(around)] * FCGI_CONTENT_MAX +
		    around[i % COUNT(around)];
		size_t len =
		    (size_t)(total < head ? labs(total) : total - head);

		ask(fd, true, "GET", "q");
		answer_bytes(next("q"), len);
		expect_bytes(fd, BARE_HEAD, bytes, len);
	}
}

TEST(small_answer_arrives_in_one_piece)
{
	unsigned char got[1024];
	int fd;

	answer_text(asked("", &fd, false, "GET"), "four");
	/* header, content, padding, the two records of the end */
	assert_int_equal(get_some(fd, got, sizeof(got)),
	    8 + (strlen(HEAD_200 "four") + 7) / 8 * 8 + FCGI_END_SIZE);
	expect_closed(fd);
}

/* The peer does not read at first: other requests are answered meanwhile. */
TEST(slow_reader_gets_it_all)
{
	int slow = start_and_dial("");

	ask(slow, true, "GET", "slow");
	answer_bytes(next("slow"), sizeof(bytes));
	round_trip_alone("meanwhile");
	expect_bytes(slow, BARE_HEAD, bytes, sizeof(bytes));
	round_trip(slow, true, "again");
}

/* A peer that reads as fast as it is sent to. */
static bool takes_all;
static unsigned sends;

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t n = 0;

	if (!takes_all)
		return syscall(SYS_sendmsg, fd, msg, flags);
	sends++;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += (ssize_t)msg->msg_iov[i].iov_len;
	return n;
}

TEST(peer_that_takes_all_at_once_keeps_no_others_waiting)
{
	int fd = start_and_dial("");

	ask(fd, false, "GET", "q");
	takes_all = true;
	sends = 0;
	answer_bytes(next("q"), sizeof(bytes));
	assert_in_range(sends, 1, 4);
	while (takes_all) {
		sends = 0;
		loop_round(loop, clock_mono() + 1000);
		assert_in_range(sends, 0, 4);
		takes_all = sends > 0;
	}
	expect_closed(fd);
}

TEST(peer_that_does_not_take_its_answer_is_dropped)
{
	char c;
	struct reply r;
	int fd;
	struct exchange *x =
	    asked("[server]\nio_timeout = 100ms\n", &fd, true, "GET");

	answer_bytes(x, sizeof(bytes));
	/* Its end of the connection is closed while the buffer is full. */
	struct pollfd pfd = { .fd = fd, .events = POLLRDHUP };
	while (poll(&pfd, 1, 0) == 0)
		serve();
	receive(fd, &r);
	assert_false(r.ended);
	assert_true(r.out.len < sizeof(bytes));
	buf_free(&r.out);
	assert_true(get_some(fd, &c, 1) <= 0);
}

TEST(peer_that_went_away_hurts_no_other)
{
	struct exchange *x;
	int fd = start_and_dial("");

	ask(fd, true, "GET", "gone");
	x = next("gone");
	hang_up(fd);
	answer_text(x, "not read");
	round_trip_alone("next");
}

/* What arrives behind a request that is not kept is not read; closing must
 * not turn it into a reset that takes the answer away. */
TEST(unread_input_does_not_destroy_the_answer)
{
	for (int tcp = 0; tcp < 2; tcp++) {
		struct exchange *x;
		struct buf b;
		int fd;

		start_on("", tcp);
		fd = dial();
		ask(fd, false, "GET", "q");
		x = next("q");
		buf_init(&b, 1 << 20);
		buf_add(&b, bytes, 100000);
		put_all(fd, &b);
		answer_text(x, "whole");
		expect_last(fd, HEAD_200 "whole");
		again();
	}
}

/* --- requests behind each other --- */

/* Many come at once on one connection: each is given when the one before it is
 * answered, and in one round after the other. */
TEST(requests_sent_ahead_are_answered_one_by_one)
{
	enum { MANY = 300 };
	char query[8];
	struct buf all, b;

	for (int at_once = 0; at_once < 2; at_once++) {
		int fd = start_and_dial("");

		answers_at_once = at_once == 1;
		buf_init(&all, 1 << 20);
		for (int i = 0; i < MANY; i++) {
			snprintf(query, sizeof(query), "q%d", i);
			open_request(&b, true, "GET", query, NULL);
			add_record(&b, FCGI_STDIN, 1, "", 0);
			assert_ok(buf_add(&all, b.data, b.len));
			buf_free(&b);
		}
		put_all(fd, &all);
		for (int i = 0; i < MANY; i++) {
			snprintf(query, sizeof(query), "q%d", i);
			if (at_once == 0) {
				struct exchange *x = next(query);

				assert_int_equal(ntaken, 0);
				answer_text(x, query);
			}
			expect_bytes(fd, HEAD_200, query, strlen(query));
		}
		assert_int_equal(answered, at_once == 1 ? MANY : 0);
		again();
	}
}

/* Input and a hangup come while the request is with its owner: they wait, and
 * keep the loop from its sleep once. */
TEST(a_peer_that_does_not_wait_for_its_answer_costs_nothing)
{
	for (int hangs_up = 0; hangs_up < 2; hangs_up++) {
		struct exchange *x;
		int fd = start_and_dial("");

		/* The second time it is watched already. */
		round_trip(fd, true, "first");
		ask(fd, true, "GET", "held");
		x = next("held");
		if (hangs_up)
			hang_up(fd);
		else
			ask(fd, true, "GET", "next");
		assert_true(serve_for(200) < 5);
		assert_int_equal(ntaken, 0);
		answer_text(x, "");
		if (!hangs_up) {
			expect(fd, HEAD_200);
			answer_query(fd, "next");
		}
		round_trip_alone("others");
		again();
	}
}

/* --- streams --- */

static unsigned rooms;
static size_t streamed;

/* Writes as much as there is room for, up to that many bytes. */
static void
stream(void *arg)
{
	struct exchange *x = arg;
	enum rc rc = RC_OK;

	rooms++;
	while (rc == RC_OK && streamed < sizeof(bytes)) {
		size_t n = 1 + streamed % EXCHANGE_PIECE;

		if (n > sizeof(bytes) - streamed)
			n = sizeof(bytes) - streamed;
		rc = exchange_write(x, bytes + streamed, n);
		streamed += n;
	}
	if (rc == RC_PENDING && streamed < sizeof(bytes))
		exchange_on_room(x, stream, x);
	else
		exchange_end(x, 7, rc == RC_CLOSED);
}

TEST(a_stream_waits_for_its_peer_and_others_do_not)
{
	int fd;
	struct exchange *x = asked("", &fd, true, "GET");
	struct reply r;

	rooms = 0;
	streamed = 0;
	stream(x);
	assert_true(streamed < sizeof(bytes));
	round_trip_alone("meanwhile");
	receive(fd, &r);
	assert_true(r.ended);
	assert_int_equal(r.app_status, 7);
	assert_int_equal(r.out.len, sizeof(bytes));
	assert_memory_equal(r.out.data, bytes, sizeof(bytes));
	assert_true(rooms > 1);
	buf_free(&r.out);
	round_trip(fd, true, "again");
}

/* Not the whole answer, and then the end of the connection. */
static void
expect_cut_off(int fd)
{
	struct reply r;

	receive(fd, &r);
	assert_false(r.ended);
	buf_free(&r.out);
}

/* What ends the wait of a stream whose peer reads nothing. */
TEST(a_stream_to_a_peer_that_takes_nothing_ends)
{
	enum { TIMEOUT, HANGUP, NO_TIME, CLOSED, ENDS };

	for (int end = 0; end < ENDS; end++) {
		const int64_t began = clock_mono();
		int fd;
		struct exchange *x = asked(
		    end == TIMEOUT ? "[server]\nio_timeout = 200ms\n" : "", &fd,
		    true, "GET");

		rooms = 0;
		streamed = 0;
		stream(x);
		settle();
		assert_int_equal(rooms, 1);
		if (end == HANGUP)
			hang_up(fd);
		if (end == NO_TIME) {
			mux_stop_waiting(mux);
			mux_stop_waiting(mux);
		}
		if (end == CLOSED)
			mux_close(mux, clock_mono() + 100);
		while (rooms == 1)
			serve();
		if (end == TIMEOUT)
			assert_true(clock_mono() - began >= 200);
		if (end == CLOSED) {
			serve_until("RSC");
		} else {
			x = asked_by(&fd, true, "others");
			streamed = 0;
			stream(x);
			/* The end of it is not waited for. */
			settle();
			assert_int_equal(streamed < sizeof(bytes), true);
			if (end == NO_TIME)
				expect_cut_off(fd);
		}
		again();
	}
}

/* The rest of the last piece is sent by mux. */
TEST(a_stream_may_end_with_a_piece_kept)
{
	struct reply r;
	size_t n = 0;
	int fd;
	struct exchange *x = asked("", &fd, false, "GET");

	while (exchange_write(x, bytes + n, EXCHANGE_PIECE) == RC_OK)
		n += EXCHANGE_PIECE;
	n += EXCHANGE_PIECE;
	exchange_end(x, 0, false);
	receive(fd, &r);
	assert_true(r.ended);
	assert_int_equal(r.out.len, n);
	assert_memory_equal(r.out.data, bytes, n);
	buf_free(&r.out);
	expect_closed(fd);
}

TEST(a_broken_stream_is_cut_off)
{
	int fd;
	struct exchange *x = asked("", &fd, true, "GET");

	assert_ok(exchange_write(x, "part", 4));
	exchange_end(x, 0, true);
	expect_cut_off(fd);
}

/* --- bodies that a helper writes --- */

static sem_t work;

static void
be_busy(UNUSED struct helpers_task *t)
{
	while (sem_wait(&work) == -1)
		continue;
}

/* The only helper is busy until sem_post(). */
static void
keep_helper_busy(void)
{
	static struct helpers_task task = { .work = be_busy,
		.done = do_nothing };

	if (helpers == NULL) {
		assert_int_equal(sem_init(&work, 0, 0), 0);
		assert_ok(helpers_open(&helpers, loop, "body", 1));
	}
	helpers_ask(helpers, &task);
}

/* While a piece waits for its turn, nothing more of that connection is read,
 * and other connections are served. */
TEST(large_bodies_wait_for_a_helper_and_others_do_not)
{
	const struct request *rq;
	struct exchange *x;
	size_t sent = 0;
	struct buf b;
	int fd;

	assert_ok(spool_setup(NULL, sizeof(bytes)));
	keep_helper_busy();
	fd = start_and_dial("[server]\nio_timeout = 100ms\n");
	open_request(&b, true, "POST", "large", NULL);
	add_body(&b, bytes, sizeof(bytes));
	add_record(&b, FCGI_STDIN, 1, "", 0);
	for (int quiet = 0; quiet < 30;) {
		ssize_t n = send(fd, b.data + sent, b.len - sent, MSG_DONTWAIT);

		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		serve();
	}
	assert_true(sent < sizeof(bytes) / 2);
	round_trip_alone("others");
	sem_post(&work);
	buf_consume(&b, sent);
	put_all(fd, &b);
	rq = exchange_request(x = next("large"));
	assert_int_equal(rq->body_state, BODY_WHOLE);
	assert_int_equal(rq->body_len, sizeof(bytes));
	assert_memory_equal(rq->body, bytes, sizeof(bytes));
	assert_true(rq->body_fd != -1);
	/* The file is not freed yet, and takes no room any more. */
	keep_helper_busy();
	finish_request(x, fd);
	assert_true(spool_has_room(sizeof(bytes)));
	round_trip(fd, true, "again");
	sem_post(&work);
}

/* While a helper has a piece, the peer goes away, or the body or mux ends. */
TEST(a_piece_that_is_written_is_no_obstacle)
{
	enum { GONE, WHOLE, STOPPED, CLOSED, ENDS };
	enum { SIZE = LIMIT_SPOOL_MEMORY + 20000 };

	for (int end = 0; end < ENDS; end++) {
		struct exchange *x;
		int fd, small;

		assert_ok(spool_setup(NULL, SIZE));
		keep_helper_busy();
		fd = start_and_dial("");
		/* The rest fits into the socket. */
		post(fd, true, "q", end == GONE ? "999999" : NULL, bytes, SIZE);
		settle();
		if (end == GONE)
			hang_up(fd);
		/* What is not written yet takes its room, too. */
		small = dial();
		post(small, false, "small", NULL, bytes, 10000);
		x = next("small");
		assert_int_equal(exchange_request(x)->body_state, BODY_NO_ROOM);
		finish_request(x, small);
		if (end == STOPPED)
			mux_stop(mux, clock_mono() + 5000);
		if (end == CLOSED)
			mux_close(mux, clock_mono() + 5000);
		settle();
		assert_int_equal(ntaken, 0);
		sem_post(&work);
		if (end == CLOSED) {
			serve_until("RSC");
		} else {
			x = next("q");
			assert_int_equal(exchange_request(x)->body_state,
			    end == GONE ? BODY_MISMATCH : BODY_WHOLE);
			answer_text(x, "");
		}
		again();
	}
}

/* --- which users may connect --- */

TEST(peers_that_are_not_allowed_are_closed_at_once)
{
	char me[64], other[64];
	struct conf *bad;
	struct mux *none;
	int fd;

	snprintf(
	    me, sizeof(me), "[server]\nallow_peers = %u 54321\n", geteuid());
	snprintf(other, sizeof(other), "[server]\nallow_peers = %u\n",
	    geteuid() + 1);
	start(me);
	fd = dial();
	round_trip(fd, true, "allowed");
	hang_up(fd);

	/* A new configuration counts from the next connection on. */
	assert_ok(reload(other));
	fd = dial();
	expect_closed(fd);
	/* An unknown user is an error, and changes nothing. */
	assert_int_equal(
	    reload("[server]\nallow_peers = no-such-user\n"), RC_INVALID);
	fd = dial();
	expect_closed(fd);
	assert_ok(reload(""));
	round_trip_alone("anyone");

	bad = conf_from("[server]\nallow_peers = root no-such-user\n");
	assert_int_equal(mux_open(&none, owner(), bad, listener), RC_INVALID);
	assert_null(none);
	conf_unref(bad);
}

/* --- another configuration --- */

TEST(a_request_keeps_the_configuration_that_it_began_with)
{
	struct exchange *x;
	struct buf b;
	int fd = start_and_dial("[server]\nworkers = 5\n");

	open_request(&b, true, "POST", "begun", NULL);
	put_all(fd, &b);
	settle();
	assert_ok(reload("[server]\nworkers = 7\n"));
	buf_init(&b, 1 << 20);
	put_with(fd, &b, "x", 1);
	x = next("begun");
	assert_ok(reload("[server]\nworkers = 9\n"));
	assert_int_equal(exchange_conf(x)->workers, 5);
	finish_request(x, fd);
	ask(fd, true, "GET", "next");
	x = next("next");
	assert_int_equal(exchange_conf(x)->workers, 9);
	finish_request(x, fd);
}

/* A shorter io_timeout counts at once. */
TEST(a_reload_moves_the_deadlines)
{
	struct buf b;
	int fd = start_and_dial("[server]\nio_timeout = 1h\n");

	open_request(&b, true, "POST", "stalled", "10");
	put_all(fd, &b);
	settle();
	assert_ok(reload("[server]\nio_timeout = 50ms\n"));
	expect_closed(fd);
}

/* --- many connections --- */

/* One more than may connect. */
static int fds[CONNECTIONS + 1];

TEST(beyond_the_limit_the_longest_idle_makes_way)
{
	start("");
	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = dial();
	/* The first one becomes the last that was idle. */
	round_trip(fds[0], true, "first");
	fds[CONNECTIONS] = dial();
	expect_closed(fds[1]);
	round_trip(fds[0], true, "first");
	round_trip(fds[2], true, "third");
	round_trip(fds[CONNECTIONS], true, "last");
}

/* They have io_timeout, and the others need not wait for that. */
TEST(slow_peers_beyond_the_limit_keep_no_others_out)
{
	int64_t began;
	int busy;
	struct exchange *x;

	start("[server]\nio_timeout = 1h\n");
	x = asked_by(&busy, false, "busy");
	for (int i = 1; i < CONNECTIONS; i++) {
		fds[i] = dial();
		assert_int_equal(send(fds[i], "\1", 1, MSG_NOSIGNAL), 1);
	}
	began = clock_mono();
	for (int i = 0; i < 3; i++)
		round_trip_alone("others");
	assert_true(clock_mono() - began < 20000);
	expect_closed(fds[1]); /* the oldest of them */
	for (int i = 2; i < CONNECTIONS; i++)
		hang_up(fds[i]);
	answer_text(x, "");
	expect_last(busy, HEAD_200);
}

/* A byte now and then keeps a connection alive for ever; its place goes to
 * others all the same. */
TEST(trickled_bodies_beyond_the_limit_keep_no_others_out)
{
	static const unsigned char byte[9] = { 1, FCGI_STDIN, 0, 1, 0, 1, 0, 0,
		'x' };
	struct buf b;
	int fd;

	start("[server]\nio_timeout = 2s\n");
	open_request(&b, false, "POST", "slow", NULL);
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = dial();
		put(fds[i], &b);
	}
	buf_free(&b);
	fd = dial();
	ask(fd, false, "GET", "others");
	while (ntaken == 0) {
		for (int i = 0; i < CONNECTIONS; i++)
			(void)!send(fds[i], byte, sizeof(byte),
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)serve_for(50);
	}
	answer_query(fd, "others");
}

/* No connection is idle and no descriptor is left: new connections wait.  mux
 * does not spin, and accepts them once there is a descriptor. */
TEST(without_descriptors_it_waits)
{
	struct rlimit limit;
	struct exchange *x;
	int busy, fd;

	start("");
	x = asked_by(&busy, false, "busy");
	fd = last_descriptor(&limit);
	assert_int_equal(
	    connect(fd, (struct sockaddr *)&address, address_len), 0);
	ask(fd, false, "GET", "waits");
	assert_true(serve_for(300) < 15);
	assert_int_equal(ntaken, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	answer_text(next("waits"), "");
	expect_last(fd, HEAD_200);
	answer_text(x, "");
	expect_last(busy, HEAD_200);
}

/* ... but one that is idle makes way. */
TEST(without_descriptors_the_idle_make_way)
{
	struct rlimit limit;
	int idle, fd;

	start("");
	idle = dial();
	round_trip(idle, true, "idle");
	fd = last_descriptor(&limit);
	assert_int_equal(
	    connect(fd, (struct sockaddr *)&address, address_len), 0);
	/* accepted, and idle itself: it stays, because no other one comes */
	settle();
	round_trip(fd, false, "new");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect_closed(fd);
	expect_closed(idle);
}

/* ... but for one whose request has arrived and is not read yet. */
TEST(without_descriptors_no_request_makes_way)
{
	struct rlimit limit;
	struct exchange *x;
	int arrived, busy, fd, seen = 0;

	start("");
	arrived = dial();
	round_trip(arrived, true, "kept");
	x = asked_by(&busy, true, "busy");
	fd = last_descriptor(&limit);
	/* No round is made before the next next(). */
	ask(arrived, true, "GET", "arrived");
	assert_int_equal(
	    connect(fd, (struct sockaddr *)&address, address_len), 0);
	ask(fd, false, "GET", "waits");
	answer_text(x, "");
	for (int i = 0; i < 2; i++) {
		x = next_of_any();
		seen +=
		    strcmp(exchange_request(x)->query, "waits") == 0 ? 1 : 2;
		answer_text(x, "");
	}
	assert_int_equal(seen, 3);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect(arrived, HEAD_200);
	expect_last(fd, HEAD_200);
	expect(busy, HEAD_200);
	expect_closed(busy); /* idle, though for the shortest time */
}

/* --- the end --- */

TEST(stop_drops_what_has_not_arrived_and_delivers_the_rest)
{
	int idle, half, fresh, queued[3], held, late;
	struct exchange *x;
	struct buf b;

	start("");
	idle = dial();
	round_trip(idle, true, "idle");
	fresh = dial();
	half = dial();
	open_request(&b, true, "POST", "half", "10");
	put_all(half, &b);
	x = asked_by(&held, true, "held");
	for (int i = 0; i < 3; i++) {
		queued[i] = dial();
		ask(queued[i], true, "GET", "queued");
	}
	late = dial();
	ask(late, true, "GET", "late");

	mux_stop(mux, clock_mono() + 200);
	expect_closed(idle);
	ask(fresh, true, "GET", "fresh");
	for (int i = 0; i < 3; i++)
		answer_text(next("queued"), "");
	answer_text(next("late"), "");
	answer_text(next("fresh"), "");
	assert_string_equal(told, "R");
	serve_until("RS");
	assert_true(get_some(half, (char[1]){ 0 }, 1) <= 0);
	hang_up(half);
	for (int i = 0; i < 3; i++)
		expect_last(queued[i], HEAD_200);
	expect_last(fresh, HEAD_200);
	mux_close(mux, clock_mono() + 5000);
	settle();
	assert_string_equal(told, "RS");
	answer_text(x, "");
	serve_until("RSC");
	expect(held, HEAD_200);
	expect_closed(held); /* though it was to be kept */
	expect_last(late, HEAD_200);
}

/* take_waiting: the connections in the backlog are accepted, or left to the
 * others that listen. */
TEST(refusing_takes_the_waiting_if_it_has_to)
{
	for (int takes = 0; takes < 2; takes++) {
		int fd[5];

		start("");
		for (size_t i = 0; i < COUNT(fd); i++) {
			fd[i] = dialled[ndialled++] = dial_unlisted();
			ask(fd[i], true, "GET", "waiting");
		}
		mux_refuse(mux, takes == 1);
		serve_until("R");
		assert_int_equal(accept(listener, NULL, NULL) == -1, takes);
		for (size_t i = 0; i < COUNT(fd) && takes; i++)
			answer_query(fd[i], "waiting");
		assert_int_equal(ntaken, 0);
		again();
	}
}

TEST(close_sends_what_is_left)
{
	int fd;

	answer_bytes(asked("", &fd, true, "GET"), sizeof(bytes));
	mux_close(mux, clock_mono() + 5000);
	expect_bytes(fd, BARE_HEAD, bytes, sizeof(bytes));
	expect_closed(fd);
	serve_until("RSC");
}

TEST(close_sends_no_longer_than_it_may)
{
	const int64_t began = clock_mono();
	int fd;

	answer_bytes(asked("", &fd, true, "GET"), sizeof(bytes));
	mux_close(mux, began + 100);
	serve_until("RSC");
	assert_true(clock_mono() >= began + 100);
	expect_cut_off(fd);
}

/* --- many at once --- */

TEST(many_peers_kept_and_not)
{
	enum { PEERS = 20, TIMES = 100 };
	int fd[PEERS];

	start("");
	answers_at_once = true;
	for (int i = 0; i < PEERS; i++)
		fd[i] = dial();
	for (int n = 0; n < TIMES; n++) {
		for (int i = 0; i < PEERS; i++)
			ask(fd[i], i % 2 == 0, "GET", "q");
		for (int i = 0; i < PEERS; i++) {
			expect(fd[i], HEAD_200 "q");
			if (i % 2 == 0)
				continue;
			expect_closed(fd[i]);
			fd[i] = dial();
		}
	}
	assert_int_equal(answered, PEERS * TIMES);
}

static int
begin_group(UNUSED void **state)
{
	log_set_level(LOG_ERROR);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 2654435761u >> 11);
	alarm(120); /* a test that waits for what never comes fails */
	return 0;
}

GROUP(begin_group, NULL)
