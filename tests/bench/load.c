/*
 * Loads an HTTP/1.1 server over kept connections, one request after another on
 * each, and checks every answer:
 *
 *	load [-c CONNECTIONS] [-t SECONDS | -n REQUESTS] [-w SECONDS]
 *	    [-b BODY] [-k KEYS] [-s STATUS] [-e FILE] [-r | -f] PORT PATH
 *
 *	-t -n	how long, or how many requests
 *	-w	before that, not counted
 *	-b	the body of each POST; its type is application/json
 *	-k	Idempotency-Key: "none", "one:TEXT", "new:SET" (each key once)
 *		or "of:SET:N[:FROM]" (any of N, from the one of that number)
 *	-s	the status that answers must have
 *	-e	the body that they must have
 *	-r -f	they are replays; they are not
 *
 * One thread, one write and one read a request.  Prints one line of JSON; the
 * status is 1 if it could not go on.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "keyname.h"

#define ANSWER_MAX  16384
#define REQUEST_MAX 4096
#define DRAIN       60 /* seconds for what is under way at the end */

/* Latencies in microseconds: 32 steps to each power of two, so 3% off. */
#define STEPS   32
#define BUCKETS (STEPS * 32)

enum keys { KEYS_NONE, KEYS_ONE, KEYS_NEW, KEYS_OF };

struct conn {
	int fd;
	bool waits; /* for an answer */
	uint64_t since;
	size_t have;
	char answer[ANSWER_MAX];
};

/* What an answer must be, and what it was not. */
static struct {
	int status;
	bool replay, first;
	char *body;
	size_t body_length;
} expected;

static struct {
	unsigned long all, requests, status, body, replay, failed;
	unsigned long bucket[BUCKETS];
	uint64_t longest;
	int other_status; /* the last that was not expected */
} seen;

static char request[REQUEST_MAX];
static size_t request_length, key_at;
static enum keys keys;
static uint64_t key_set, key_count, key_from, key_next, draw;
static int epoll = -1;
static struct sockaddr_in address;

static void
die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- latencies ---------------------------------------------------------- */

static unsigned
bucket_of(uint64_t us)
{
	unsigned power = 0;

	while (us >> power >= 2 * STEPS)
		power++;
	power = power * STEPS + (unsigned)(us >> power);
	return power < BUCKETS ? power : BUCKETS - 1;
}

static double
bucket_us(unsigned bucket)
{
	unsigned power = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;

	return ((double)(bucket - power * STEPS) + 0.5) *
	    (double)(UINT64_C(1) << power);
}

static double
percentile(double share)
{
	unsigned long rest = (unsigned long)((double)seen.requests * share);
	unsigned i;

	for (i = 0; i < BUCKETS - 1 && seen.bucket[i] <= rest; i++)
		rest -= seen.bucket[i];
	return bucket_us(i) / 1e3;
}

/* --- requests ----------------------------------------------------------- */

static void
make_request(const char *path, const char *body, const char *key)
{
	char *at;
	int n;

	n = snprintf(request, sizeof(request),
	    "POST %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n"
	    "%s%s%s\r\n%s",
	    path, strlen(body), key == NULL ? "" : "Idempotency-Key: \"",
	    key == NULL ? "" : key, key == NULL ? "" : "\"\r\n", body);
	if (n < 0 || (size_t)n >= sizeof(request)) {
		fputs("load: the request is too long\n", stderr);
		exit(1);
	}
	request_length = (size_t)n;
	at = strstr(request, "Key: \"");
	key_at = at == NULL ? 0 : (size_t)(at - request) + 6;
}

static void
set_keys(const char *path, const char *body, char *what)
{
	static const char room[] = "0123456789abcdef0123456789abcdef";
	char *set = strchr(what, ':');

	if (set != NULL)
		*set++ = '\0';
	if (strcmp(what, "none") == 0 || set == NULL) {
		make_request(path, body, NULL);
		return;
	}
	if (strcmp(what, "one") == 0) {
		keys = KEYS_ONE;
		make_request(path, body, set);
		return;
	}
	keys = strcmp(what, "of") == 0 ? KEYS_OF : KEYS_NEW;
	key_set = strtoull(set, &set, 10);
	if (keys == KEYS_OF) {
		key_count = *set == ':' ? strtoull(set + 1, &set, 10) : 1;
		key_from = *set == ':' ? strtoull(set + 1, NULL, 10) : 0;
	}
	make_request(path, body, room);
}

static void
put_key(void)
{
	if (keys == KEYS_NEW) {
		keyname(request + key_at, key_set, key_next++);
	} else if (keys == KEYS_OF) {
		draw = keyname_mix(draw + key_next++);
		keyname(request + key_at, key_set, key_from + draw % key_count);
	}
}

static void
ask(struct conn *c)
{
	put_key();
	c->have = 0;
	c->waits = true;
	c->since = now_us();
	if (write(c->fd, request, request_length) != (ssize_t)request_length)
		die("write");
}

static void
join(struct conn *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int on = 1;

	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 ||
	    connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		die("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
		die("epoll_ctl");
}

/* --- answers ------------------------------------------------------------ */

struct head {
	int status;
	size_t length; /* of the whole answer */
	size_t body;   /* where that is */
	bool replay, closes;
};

static bool
is_field(const char *line, size_t length, const char *name)
{
	size_t n = strlen(name);

	return length >= n && strncasecmp(line, name, n) == 0;
}

/* Whether the head is here; one without a Content-Length ends it all. */
static bool
read_head(const struct conn *c, struct head *h)
{
	const char *end, *line, *next;
	bool has_length = false;

	memset(h, 0, sizeof(*h));
	end = memmem(c->answer, c->have, "\r\n\r\n", 4);
	if (end == NULL)
		return false;
	h->body = (size_t)(end - c->answer) + 4;
	h->status = atoi(c->answer + strlen("HTTP/1.1 "));
	for (line = c->answer; line < end; line = next + 2) {
		next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
		if (is_field(line, (size_t)(next - line), "content-length:")) {
			has_length = true;
			h->length = strtoul(line + 15, NULL, 10) + h->body;
		} else if (is_field(line, (size_t)(next - line),
			       "idempotent-replayed: true"))
			h->replay = true;
		else if (is_field(
			     line, (size_t)(next - line), "connection: close"))
			h->closes = true;
	}
	if (has_length && h->length <= ANSWER_MAX)
		return true;
	fprintf(stderr, "load: no Content-Length, or too long: %.*s\n",
	    (int)(end - c->answer), c->answer);
	exit(1);
}

static void
judge(const struct conn *c, const struct head *h)
{
	uint64_t us = now_us() - c->since;

	seen.requests++;
	seen.bucket[bucket_of(us)]++;
	if (us > seen.longest)
		seen.longest = us;
	if (expected.status != 0 && h->status != expected.status) {
		seen.status++;
		seen.other_status = h->status;
	} else if ((expected.replay && !h->replay) ||
	    (expected.first && h->replay)) {
		seen.replay++;
	} else if (expected.body != NULL &&
	    (h->length - h->body != expected.body_length ||
		memcmp(c->answer + h->body, expected.body,
		    expected.body_length) != 0)) {
		seen.body++;
	}
}

/* Whether an answer is complete: then the connection is free. */
static bool
hear(struct conn *c, bool counts)
{
	struct head h;
	ssize_t n;

	n = read(c->fd, c->answer + c->have, ANSWER_MAX - c->have);
	if (n <= 0) {
		/* The server may close an idle connection, and no other. */
		if (c->waits)
			seen.failed++;
		close(c->fd);
		join(c);
		return true;
	}
	c->have += (size_t)n;
	if (!read_head(c, &h) || c->have < h.length)
		return false;
	seen.all++;
	if (counts)
		judge(c, &h);
	if (h.closes) {
		close(c->fd);
		join(c);
	}
	return true;
}

/* --- all of it ---------------------------------------------------------- */

static double
go(struct conn *conns, int n, double warm, double seconds, unsigned long most)
{
	uint64_t begin, end, now = now_us();
	struct epoll_event events[64];
	unsigned long asked = 0;
	int i, ready, waiting = 0;

	begin = now + (uint64_t)(warm * 1e6);
	end = most > 0 ? UINT64_MAX : begin + (uint64_t)(seconds * 1e6);
	for (i = 0; i < n; i++, waiting++, asked++)
		ask(&conns[i]);
	while (waiting > 0) {
		ready = epoll_wait(epoll, events, 64, 1000);
		now = now_us();
		if (now > end && now - end > DRAIN * UINT64_C(1000000)) {
			seen.failed += (unsigned long)waiting;
			break;
		}
		for (i = 0; i < ready; i++) {
			struct conn *c = events[i].data.ptr;

			if (!hear(c, now >= begin && now < end))
				continue;
			if (!c->waits)
				continue;
			c->waits = false;
			waiting--;
			if (most > 0 ? asked >= most : now >= end)
				continue;
			ask(c);
			waiting++;
			asked++;
		}
	}
	return most > 0 ? (double)(now - begin) / 1e6 : seconds;
}

static void
print(double seconds)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	printf("{\"all\": %lu, \"requests\": %lu, \"seconds\": %.3f, \"rate\": "
	       "%.1f, "
	       "\"p50\": %.3f, \"p99\": %.3f, \"longest\": %.3f, "
	       "\"cpu\": %.3f, \"failed\": %lu, \"wrong_status\": %lu, "
	       "\"other_status\": %d, \"wrong_body\": %lu, "
	       "\"wrong_replay\": %lu}\n",
	    seen.all, seen.requests, seconds, (double)seen.requests / seconds,
	    percentile(0.5), percentile(0.99), (double)seen.longest / 1e3,
	    (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
		(double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
	    seen.failed, seen.status, seen.other_status, seen.body,
	    seen.replay);
}

static void
read_expected(const char *path)
{
	FILE *f = fopen(path, "rb");

	expected.body = malloc(ANSWER_MAX);
	if (f == NULL || expected.body == NULL)
		die(path);
	expected.body_length = fread(expected.body, 1, ANSWER_MAX, f);
	fclose(f);
}

int
main(int argc, char **argv)
{
	static char none[] = "none";
	char *body = none + 4, *what = none;
	double warm = 0, seconds = 1;
	unsigned long most = 0;
	struct conn *conns;
	int i, option, n = 1;

	while ((option = getopt(argc, argv, "c:t:n:w:b:k:s:e:rf")) != -1) {
		switch (option) {
		case 'c':
			n = atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 'n':
			most = strtoul(optarg, NULL, 10);
			break;
		case 'w':
			warm = atof(optarg);
			break;
		case 'b':
			body = optarg;
			break;
		case 'k':
			what = optarg;
			break;
		case 's':
			expected.status = atoi(optarg);
			break;
		case 'e':
			read_expected(optarg);
			break;
		case 'r':
			expected.replay = true;
			break;
		case 'f':
			expected.first = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2 || n < 1) {
		fputs("usage: load [OPTION ...] PORT PATH\n", stderr);
		return 2;
	}
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)atoi(argv[optind]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	set_keys(argv[optind + 1], body, what);
	draw = now_us();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc((size_t)n, sizeof(*conns));
	if (epoll < 0 || conns == NULL)
		die("start");
	for (i = 0; i < n; i++)
		join(&conns[i]);
	print(go(conns, n, warm, seconds, most));
	return 0;
}
