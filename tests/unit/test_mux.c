/*
 * mux: requests, bodies and answers, and peers that keep others waiting.
 */
#include "config.h"

#include <poll.h>
#include <sys/syscall.h>

#include "mux_fixture.h"

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
	for (int i = 0; i < 4; i++) {
		const bool hangs_up = i % 2 == 1;
		struct exchange *x;
		int fd = start_and_dial("");

		/* The second time it is watched already. */
		if (i >= 2)
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
