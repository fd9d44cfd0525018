/*
 * fcgi_client: a request that fcgi.c reads again, and answers however they are
 * cut.
 */
#include "config.h"

#include "cases.h"

#include "fcgi.h"
#include "limit.h"

/* What the responder's side makes of a request: "NAME=VALUE\n"..., the body. */
static void
read_request(const struct buf *bytes, struct buf *text)
{
	enum fcgi_event event = FCGI_EV_MORE;
	size_t at = 0, used;
	struct fcgi f;

	fcgi_init(&f);
	while (at < bytes->len && event != FCGI_EV_END) {
		event = fcgi_feed(&f, bytes->data + at, bytes->len - at, &used);
		at += used;
		assert_int_not_equal(event, FCGI_EV_ERROR);
		assert_int_not_equal(event, FCGI_EV_REPLY);
		if (event == FCGI_EV_HEAD) {
			assert_false(f.keep_conn);
			for (size_t i = 0; i < f.nparams; i++)
				assert_ok(buf_addf(text, "%s=%s\n",
				    f.params[i].name, f.params[i].value));
		}
		if (event == FCGI_EV_BODY)
			assert_ok(buf_add(text, f.body, f.body_len));
	}
	assert_int_equal(event, FCGI_EV_END);
	assert_int_equal(at, bytes->len);
	fcgi_free(&f);
}

TEST(a_responder_reads_what_was_written)
{
	char *long_one = malloc(100001);
	char a[] = "A=1", empty[] = "EMPTY=", path[] = "PATH=/bin";
	char paths[] = "PATHS=x";
	char *envp[] = { a, empty, path, paths, long_one, NULL };
	struct buf bytes, text;

	memset(long_one, 'v', 100000);
	memcpy(long_one, "LONG=", 5);
	long_one[100000] = '\0';
	buf_init(&bytes, 1 << 20);
	buf_init(&text, 1 << 20);
	assert_ok(fcgi_client_begin(&bytes, envp, "PATH"));
	assert_ok(fcgi_client_stdin(&bytes, "body", 4));
	assert_ok(fcgi_client_stdin(&bytes, "more", 3));
	assert_ok(fcgi_client_stdin(&bytes, NULL, 0));
	read_request(&bytes, &text);
	assert_memory_equal(text.data, "A=1\nEMPTY=\nPATHS=x\nLONG=v", 25);
	assert_string_equal(text.data + text.len - 8, "\nbodymor");
	assert_int_equal(text.len, 19 + 100001 + 7);
	buf_free(&bytes);
	buf_free(&text);
	free(long_one);
}

TEST(a_request_above_its_limit_is_refused)
{
	char name[] = "NAME=0123456789012345678901234567890123456789";
	char *envp[] = { name, NULL };
	struct buf bytes;

	buf_init(&bytes, 40);
	assert_int_equal(fcgi_client_begin(&bytes, envp, NULL), RC_LIMIT);
	buf_free(&bytes);
}

/* Feeds pieces of at most max bytes; output, then "|" and errors. */
static enum fcgi_client_event
feed(struct fcgi_client *c, const struct buf *in, size_t max, struct buf *out,
    struct buf *err)
{
	enum fcgi_client_event event = FCGI_CLIENT_MORE;
	size_t at = 0, n, used;

	fcgi_client_init(c);
	while (at < in->len && !c->over) {
		n = in->len - at < max ? in->len - at : max;
		event = fcgi_client_feed(c, in->data + at, n, &used);
		assert_true(used > 0 && used <= n);
		at += used;
		if (event == FCGI_CLIENT_STDOUT)
			assert_ok(buf_add(out, c->bytes, c->len));
		if (event == FCGI_CLIENT_STDERR)
			assert_ok(buf_add(err, c->bytes, c->len));
	}
	return event;
}

static void
add(struct buf *b, unsigned type, uint16_t id, const void *p, size_t n,
    size_t padding)
{
	unsigned char header[8];

	fcgi_put_header(header, type, id, n, padding);
	assert_ok(buf_add(b, header, 8));
	assert_ok(buf_add(b, p, n));
	assert_ok(buf_add(b, "\1\2\3\4\5\6\7", padding));
}

enum { END = 3, OUT = 6, ERR = 7 };

TEST(an_answer_is_the_same_however_it_is_cut)
{
	struct buf in, out, err;
	struct fcgi_client c;

	buf_init(&in, 4096);
	buf_init(&out, 4096);
	buf_init(&err, 4096);
	add(&in, OUT, 1, "Status", 6, 2);
	add(&in, 11, 0, "01234567", 8, 0); /* about the connection */
	add(&in, ERR, 1, "oops", 4, 0);
	add(&in, OUT, 1, ": 201", 5, 0);
	add(&in, ERR, 1, "", 0, 0);
	add(&in, OUT, 1, "", 0, 7);
	add(&in, END, 1, "\0\1\2\3\0xyz", 8, 0);
	add(&in, OUT, 1, "late", 4, 0);
	for (size_t max = 1; max < 40; max++) {
		buf_clear(&out);
		buf_clear(&err);
		assert_int_equal(
		    feed(&c, &in, max, &out, &err), FCGI_CLIENT_END);
		assert_string_equal(out.data, "Status: 201");
		assert_string_equal(err.data, "oops");
		assert_int_equal(c.status, 0x10203);
		assert_false(c.refused);
	}
	buf_free(&in);
	buf_free(&out);
	buf_free(&err);
}

TEST(what_is_no_answer_is_an_error)
{
	static const struct {
		unsigned type;
		size_t n;
		enum fcgi_client_event want;
		bool refused;
		const char *body;
	} rows[] = {
		{ END, 8, FCGI_CLIENT_END, false, "\0\0\0\0\0\0\0\0" },
		{ END, 8, FCGI_CLIENT_END, true, "\0\0\0\0\1\0\0\0" },
		{ END, 8, FCGI_CLIENT_END, true, "\0\0\0\0\2\0\0\0" },
		{ END, 8, FCGI_CLIENT_END, true, "\0\0\0\0\3\0\0\0" },
		{ END, 7, FCGI_CLIENT_ERROR, false, "\0\0\0\0\0\0\0" },
		{ END, 9, FCGI_CLIENT_ERROR, false, "\0\0\0\0\0\0\0\0\0" },
		{ 1, 8, FCGI_CLIENT_ERROR, false, "\0\0\0\0\0\0\0\0" },
		{ 99, 0, FCGI_CLIENT_ERROR, false, "" },
	};
	struct buf in, none;
	struct fcgi_client c;

	buf_init(&in, 4096);
	buf_init(&none, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		buf_clear(&in);
		add(&in, rows[i].type, 1, rows[i].body, rows[i].n, 0);
		assert_int_equal(
		    feed(&c, &in, 4096, &none, &none), rows[i].want);
		assert_int_equal(c.refused, rows[i].refused);
	}
	buf_clear(&in);
	assert_ok(buf_adds(&in, "HTTP/1.1 200 OK\r\n"));
	assert_int_equal(feed(&c, &in, 4096, &none, &none), FCGI_CLIENT_ERROR);
	buf_free(&in);
}
