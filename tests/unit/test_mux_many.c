/*
 * mux: streams, helpers, a reload, many connections, and the end.
 */
#include "config.h"

#include <semaphore.h>
#include <sys/resource.h>

#include "mux_fixture.h"

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

/* Until mux has told that. */
static void
serve_until(const char *want)
{
	while (strlen(told) < strlen(want))
		serve();
	assert_string_equal(told, want);
}

/* A new connection asks; returns the request as the owner has it. */
static struct exchange *
asked_by(int *fd, bool keep, const char *query)
{
	*fd = dial();
	ask(*fd, keep, "GET", query);
	return next(query);
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
		size_t n = 1 + streamed % ANSWER_PART;

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

	while (exchange_write(x, bytes + n, ANSWER_PART) == RC_OK)
		n += ANSWER_PART;
	n += ANSWER_PART;
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
