/*
 * fcgi: each row is a sequence of records and the events that they must give,
 * fed whole, byte by byte, and in pieces of 7 and 4096 bytes.
 */
#include "config.h"

#include "cases.h"

#include <fastcgi.h>

#include "fcgi.h"
#include "limit.h"

struct rec {
	int type, id;
	const char *content;
	size_t len;
	int padding;
};

#define R(type, id, text, padding)                          \
	{                                                   \
		type, id, text, sizeof(text) - 1, (padding) \
	}
#define BEGIN(id)        R(FCGI_BEGIN_REQUEST, id, "\0\1\0\0\0\0\0\0", 0)
#define BEGIN_KEEP(id)   R(FCGI_BEGIN_REQUEST, id, "\0\1\1\0\0\0\0\0", 0)
#define PARAMS(id, text) R(FCGI_PARAMS, id, text, 0)
#define INPUT(id, text)  R(FCGI_STDIN, id, text, 0)
#define NO_BODY(id)      PARAMS(id, ""), INPUT(id, "")
#define WHOLE(id)        BEGIN(id), NO_BODY(id)
#define TOO_LONG         "ERROR a parameter is longer than its data"
#define VALUES(text)     R(FCGI_GET_VALUES, 0, text, 0)
#define END_OF_RECORDS           \
	{                        \
		0, 0, NULL, 0, 0 \
	}
#define MAX_RECORDS 12

struct row {
	const char *name;
	struct rec recs[MAX_RECORDS];
	const char *trace;
};

static const struct row rows[] = {
	{ "nothing", { END_OF_RECORDS }, "" },
	{ "a request without parameters and body", { WHOLE(1) },
	    "HEAD 1|END|" },
	{ "parameters and a body",
	    { BEGIN(1), PARAMS(1, "\1\3Axyz\2\0BC"), PARAMS(1, ""),
		INPUT(1, "hello"), INPUT(1, "") },
	    "HEAD 1 A=xyz BC=|BODY hello|END|" },
	{ "the connection is to be kept", { BEGIN_KEEP(1), NO_BODY(1) },
	    "HEAD 1 keep|END|" },
	{ "a large request id", { WHOLE(65535) }, "HEAD 65535|END|" },
	{ "padding after every record",
	    { R(FCGI_BEGIN_REQUEST, 1, "\0\1\0\0\0\0\0\0", 255),
		R(FCGI_PARAMS, 1, "\1\1Ab", 4), R(FCGI_PARAMS, 1, "", 8),
		R(FCGI_STDIN, 1, "body", 1), R(FCGI_STDIN, 1, "", 7) },
	    "HEAD 1 A=b|BODY body|END|" },
	{ "lengths of four bytes",
	    { BEGIN(1), PARAMS(1, "\200\0\0\1\200\0\0\2Abc\1\200\0\0\1Bd"),
		NO_BODY(1) },
	    "HEAD 1 A=bc B=d|END|" },
	{ "a pair cut by the end of a record",
	    { BEGIN(1), PARAMS(1, "\1\3Ax"), PARAMS(1, "yz\1"),
		PARAMS(1, "\1Bc"), NO_BODY(1) },
	    "HEAD 1 A=xyz B=c|END|" },
	{ "a name twice", { BEGIN(1), PARAMS(1, "\1\1Ax\1\1Ay"), NO_BODY(1) },
	    "HEAD 1 A=x A=y|END|" },
	{ "a body in two records",
	    { BEGIN(1), PARAMS(1, ""), INPUT(1, "he"), INPUT(1, "llo"),
		INPUT(1, "") },
	    "HEAD 1|BODY hello|END|" },
	{ "a NUL in a value", { BEGIN(1), PARAMS(1, "\1\3Ax\0y"), NO_BODY(1) },
	    "HEAD 1 nul A=x|END|" },
	{ "a NUL in a name", { BEGIN(1), PARAMS(1, "\3\1A\0By"), NO_BODY(1) },
	    "HEAD 1 nul A=y|END|" },
	{ "two requests after each other, the flags not mixed",
	    { BEGIN_KEEP(1), PARAMS(1, "\1\1A\0"), PARAMS(1, ""), INPUT(1, "x"),
		INPUT(1, ""), BEGIN(2), PARAMS(2, "\1\1Cd"), NO_BODY(2) },
	    "HEAD 1 keep nul A=|BODY x|END|HEAD 2 C=d|END|" },
	{ "the same id again after its end",
	    { BEGIN_KEEP(1), NO_BODY(1), WHOLE(1) },
	    "HEAD 1 keep|END|HEAD 1|END|" },
	{ "aborted in the body",
	    { BEGIN_KEEP(1), PARAMS(1, ""), INPUT(1, "x"),
		R(FCGI_ABORT_REQUEST, 1, "", 0), INPUT(1, "y"), INPUT(1, ""),
		WHOLE(2) },
	    "HEAD 1 keep|BODY x|ABORT|HEAD 2|END|" },
	{ "aborted in the parameters",
	    { BEGIN(1), PARAMS(1, "\1\1A"), R(FCGI_ABORT_REQUEST, 1, "", 3) },
	    "ABORT|" },
	{ "an abort of a request that is not there",
	    { R(FCGI_ABORT_REQUEST, 3, "", 0), BEGIN(1),
		R(FCGI_ABORT_REQUEST, 3, "", 0), NO_BODY(1) },
	    "HEAD 1|END|" },
	{ "records of ids that never began are ignored",
	    { PARAMS(7, "\1\1Ab"), BEGIN(1), PARAMS(7, ""), PARAMS(1, ""),
		INPUT(7, "bad"), INPUT(1, "good"), INPUT(7, ""), INPUT(1, "") },
	    "HEAD 1|BODY good|END|" },
	{ "FCGI_DATA is ignored",
	    { BEGIN(1), R(FCGI_DATA, 1, "x", 7), PARAMS(1, ""),
		R(FCGI_DATA, 1, "abc", 0), R(FCGI_DATA, 1, "", 0),
		INPUT(1, "") },
	    "HEAD 1|END|" },
	{ "a second request on the connection is refused, the first goes on",
	    { BEGIN_KEEP(1), BEGIN(2), PARAMS(2, "\1\1Xy"), PARAMS(1, ""),
		PARAMS(2, ""), INPUT(2, "bad"), INPUT(1, "good"), INPUT(2, ""),
		INPUT(1, "") },
	    "REPLY 0103000200080000 0000000001000000|HEAD 1 keep|BODY good|"
	    "END|" },
	{ "an authorizer is refused and its connection closed",
	    { R(FCGI_BEGIN_REQUEST, 5, "\0\2\0\0\0\0\0\0", 0), PARAMS(5, "") },
	    "REPLY 0103000500080000 0000000003000000 closing|" },
	{ "a filter on a kept connection is refused, the next request is not",
	    { R(FCGI_BEGIN_REQUEST, 5, "\0\3\1\0\0\0\0\0", 0), NO_BODY(5),
		WHOLE(1) },
	    "REPLY 0103000500080000 0000000003000000|HEAD 1|END|" },
	{ "a role above 255 is no responder",
	    { R(FCGI_BEGIN_REQUEST, 5, "\1\1\1\0\0\0\0\0", 0) },
	    "REPLY 0103000500080000 0000000003000000|" },
	{ "FCGI_GET_VALUES: no name is known",
	    { VALUES("\17\0FCGI_MPXS_CONNS\16\0FCGI_MAX_CONNS"),
		VALUES("\377\377\377\377\0FCGI"), VALUES("") },
	    "REPLY 010a000000000000|REPLY 010a000000000000|"
	    "REPLY 010a000000000000|" },
	{ "FCGI_GET_VALUES within a request",
	    { BEGIN(1), VALUES(""), PARAMS(1, ""), INPUT(1, "a"), VALUES(""),
		INPUT(1, "b"), INPUT(1, "") },
	    "REPLY 010a000000000000|HEAD 1|BODY a|REPLY 010a000000000000|"
	    "BODY b|END|" },
	{ "an unknown management record", { R(99, 0, "what", 4), WHOLE(1) },
	    "REPLY 010b000000080000 6300000000000000|HEAD 1|END|" },
	{ "a body with id 0 is none, also where there is no request",
	    { INPUT(0, "bad"), BEGIN(1), INPUT(0, "bad"), NO_BODY(1) },
	    "REPLY 010b000000080000 0500000000000000|"
	    "REPLY 010b000000080000 0500000000000000|HEAD 1|END|" },
	{ "FCGI_BEGIN_REQUEST with id 0 is a management record", { BEGIN(0) },
	    "REPLY 010b000000080000 0100000000000000|" },
	{ "the same request begins twice", { BEGIN(1), BEGIN(1) },
	    "ERROR a request begins twice" },
	{ "FCGI_BEGIN_REQUEST too short",
	    { R(FCGI_BEGIN_REQUEST, 1, "\0\1\0\0\0\0\0", 1) },
	    "ERROR FCGI_BEGIN_REQUEST of a wrong size" },
	{ "FCGI_PARAMS after their end",
	    { BEGIN(1), PARAMS(1, ""), PARAMS(1, "\1\1Ab") },
	    "HEAD 1|ERROR FCGI_PARAMS after their end" },
	{ "FCGI_STDIN before the end of the parameters",
	    { BEGIN(1), PARAMS(1, "\1\1Ab"), INPUT(1, "x") },
	    "ERROR FCGI_STDIN before the parameters" },
	{ "a record that only applications send",
	    { BEGIN(1), R(FCGI_STDOUT, 1, "x", 0) },
	    "ERROR a record that no web server sends" },
	{ "a name longer than the parameters",
	    { BEGIN(1), PARAMS(1, "\5\0Ab"), PARAMS(1, "") }, TOO_LONG },
	{ "a value longer than the parameters",
	    { BEGIN(1), PARAMS(1, "\1\2Ab"), PARAMS(1, "") }, TOO_LONG },
	{ "a huge name length",
	    { BEGIN(1), PARAMS(1, "\377\377\377\377\0Ab"), PARAMS(1, "") },
	    TOO_LONG },
	{ "two huge lengths whose sum wraps",
	    { BEGIN(1), PARAMS(1, "\377\377\377\377\377\377\377\377Ab"),
		PARAMS(1, "") },
	    TOO_LONG },
	{ "a length of four bytes cut short",
	    { BEGIN(1), PARAMS(1, "\1\1Ab\200\0"), PARAMS(1, "") }, TOO_LONG },
	{ "a value length missing",
	    { BEGIN(1), PARAMS(1, "\1"), PARAMS(1, "") }, TOO_LONG },
};

static void
add_record(struct buf *b, const struct rec *r)
{
	unsigned char header[8] = { 1, (unsigned char)r->type,
		(unsigned char)(r->id >> 8), (unsigned char)r->id,
		(unsigned char)(r->len >> 8), (unsigned char)r->len,
		(unsigned char)r->padding, 0 };

	assert_ok(buf_add(b, header, sizeof(header)));
	assert_ok(buf_add(b, r->content, r->len));
	for (int i = 0; i < r->padding; i++)
		assert_ok(buf_addc(b, (char)0xee));
}

static void
trace_head(const struct fcgi *f, struct buf *trace)
{
	buf_addf(trace, "HEAD %u%s%s", f->id, f->keep_conn ? " keep" : "",
	    f->has_nul ? " nul" : "");
	for (size_t i = 0; i < f->nparams; i++)
		buf_addf(
		    trace, " %s=%s", f->params[i].name, f->params[i].value);
	buf_adds(trace, "|");
}

static void
trace_reply(struct fcgi *f, struct buf *trace)
{
	buf_adds(trace, "REPLY ");
	for (size_t i = 0; i < f->reply.len; i++)
		buf_addf(trace, "%s%02x", i == 8 ? " " : "",
		    (unsigned char)f->reply.data[i]);
	buf_adds(trace, f->closing ? " closing|" : "|");
	buf_clear(&f->reply);
}

/* Feeds in pieces of step bytes; says what happened as text. */
static void
feed(struct fcgi *f, const struct buf *in, size_t step, struct buf *trace)
{
	size_t pos = 0, used;
	bool in_body = false;

	while (pos < in->len) {
		size_t n = in->len - pos < step ? in->len - pos : step;
		enum fcgi_event ev;

		ev = fcgi_feed(f, in->data + pos, n, &used);
		assert_true(used <= n);
		pos += used;
		if (in_body && ev != FCGI_EV_BODY && ev != FCGI_EV_MORE) {
			buf_adds(trace, "|");
			in_body = false;
		}
		switch (ev) {
		case FCGI_EV_MORE:
			assert_int_equal(used, n);
			break;
		case FCGI_EV_HEAD:
			trace_head(f, trace);
			break;
		case FCGI_EV_BODY:
			if (!in_body)
				buf_adds(trace, "BODY ");
			in_body = true;
			buf_add(trace, f->body, f->body_len);
			break;
		case FCGI_EV_END:
			buf_adds(trace, "END|");
			fcgi_next(f);
			break;
		case FCGI_EV_ABORT:
			buf_adds(trace, "ABORT|");
			fcgi_next(f);
			break;
		case FCGI_EV_REPLY:
			trace_reply(f, trace);
			break;
		case FCGI_EV_ERROR:
			buf_addf(trace, "ERROR %s", f->why);
			/* and nothing but errors from now on */
			assert_int_equal(
			    fcgi_feed(f, "x", 1, &used), FCGI_EV_ERROR);
			assert_int_equal(used, 0);
			return;
		}
	}
}

TEST(every_row_in_pieces_of_every_size)
{
	static const size_t steps[] = { SIZE_MAX, 1, 7, 4096 };
	struct buf in, trace;
	struct fcgi f;

	buf_init(&in, 1 << 20);
	buf_init(&trace, 1 << 20);
	for (const struct row *row = rows; row < rows + COUNT(rows); row++) {
		print_message("%s\n", row->name);
		buf_clear(&in);
		for (size_t i = 0;
		     i < MAX_RECORDS && row->recs[i].content != NULL; i++)
			add_record(&in, &row->recs[i]);
		for (size_t i = 0; i < COUNT(steps); i++) {
			fcgi_init(&f);
			buf_clear(&trace);
			feed(&f, &in, steps[i], &trace);
			assert_string_equal(trace.data, row->trace);
			fcgi_free(&f);
		}
	}
	buf_free(&in);
	buf_free(&trace);
}

/* FCGI_BEGIN_REQUEST, then count parameters of one name and a value of
 * value_len bytes, then the end of the parameters. */
static void
many_params(struct buf *in, size_t count, size_t value_len)
{
	static const struct rec begin = BEGIN(1), end = PARAMS(1, "");
	struct buf raw;

	buf_init(in, 1 << 20);
	buf_init(&raw, 1 << 20);
	while (count-- > 0) {
		char lengths[5] = { 1, (char)(0x80 | value_len >> 24),
			(char)(value_len >> 16), (char)(value_len >> 8),
			(char)value_len };

		assert_ok(buf_add(&raw, lengths, 5));
		assert_ok(buf_addc(&raw, 'N'));
		for (size_t i = 0; i < value_len; i++)
			assert_ok(buf_addc(&raw, 'v'));
	}
	add_record(in, &begin);
	for (size_t pos = 0; pos < raw.len; pos += 60000) {
		struct rec r = { FCGI_PARAMS, 1, raw.data + pos,
			raw.len - pos < 60000 ? raw.len - pos : 60000, 0 };

		add_record(in, &r);
	}
	add_record(in, &end);
	buf_free(&raw);
}

static enum fcgi_event
feed_all(struct fcgi *f, const struct buf *in)
{
	size_t used, pos = 0;
	enum fcgi_event ev;

	do {
		ev = fcgi_feed(f, in->data + pos, in->len - pos, &used);
		pos += used;
	} while (ev == FCGI_EV_MORE && pos < in->len);
	return ev;
}

TEST(params_limits)
{
	static const struct {
		size_t count, value_len;
		const char *error;
	} limits[] = {
		{ LIMIT_PARAM_COUNT, 3, NULL },
		{ LIMIT_PARAM_COUNT + 1, 3, "too many parameters" },
		{ 1, LIMIT_PARAMS - 6, NULL },
		{ 1, LIMIT_PARAMS - 5, "the parameters are too long" },
	};

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct buf in;
		struct fcgi f;

		many_params(&in, limits[i].count, limits[i].value_len);
		fcgi_init(&f);
		if (limits[i].error == NULL) {
			assert_int_equal(feed_all(&f, &in), FCGI_EV_HEAD);
			assert_int_equal(f.nparams, limits[i].count);
			assert_int_equal(strlen(f.params[f.nparams - 1].value),
			    limits[i].value_len);
		} else {
			assert_int_equal(feed_all(&f, &in), FCGI_EV_ERROR);
			assert_string_equal(f.why, limits[i].error);
		}
		fcgi_free(&f);
		buf_free(&in);
	}
}

TEST(version_other_than_1)
{
	struct fcgi f;
	size_t used;

	fcgi_init(&f);
	assert_int_equal(
	    fcgi_feed(&f, "GET / HTTP/1.0\r\n", 16, &used), FCGI_EV_ERROR);
	assert_string_equal(f.why, "not FastCGI 1");
	fcgi_free(&f);
}

TEST(replies_not_taken_are_bounded)
{
	static const unsigned char ask[8] = { 1, FCGI_GET_VALUES };
	struct fcgi f;
	size_t used;
	int n = 0;

	fcgi_init(&f);
	while (fcgi_feed(&f, ask, 8, &used) == FCGI_EV_REPLY)
		assert_true(++n < 10000);
	assert_true(n > 1);
	assert_string_equal(f.why, "replies are not taken");
	fcgi_free(&f);
}

TEST(idle_only_between_records)
{
	static const unsigned char ask[16] = { 1, FCGI_GET_VALUES, 0, 0, 0, 0,
		8 };
	struct fcgi f;
	size_t used;

	fcgi_init(&f);
	assert_true(fcgi_idle(&f));
	for (size_t i = 0; i < 15; i++) {
		assert_int_equal(
		    fcgi_feed(&f, ask + i, 1, &used), FCGI_EV_MORE);
		assert_false(fcgi_idle(&f));
	}
	assert_int_equal(fcgi_feed(&f, ask + 15, 1, &used), FCGI_EV_REPLY);
	assert_true(fcgi_idle(&f));
	fcgi_free(&f);
}

TEST(stdout_header)
{
	static const struct {
		size_t n, padding;
	} sizes[] = { { 0, 0 }, { 1, 7 }, { 7, 1 }, { 8, 0 },
		{ FCGI_CONTENT_MAX, 0 }, { 65535, 1 } };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		unsigned char h[8];

		assert_int_equal(fcgi_stdout_header(0x1234, sizes[i].n, h),
		    sizes[i].padding);
		assert_int_equal(h[0], 1);
		assert_int_equal(h[1], FCGI_STDOUT);
		assert_int_equal(h[2] << 8 | h[3], 0x1234);
		assert_int_equal(h[4] << 8 | h[5], sizes[i].n);
		assert_int_equal(h[6], sizes[i].padding);
	}
}

TEST(end_of_a_request)
{
	static const unsigned char want[FCGI_END_SIZE] = { 1, 6, 1, 2, 0, 0, 0,
		0, 1, 3, 1, 2, 0, 8, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0 };
	unsigned char out[FCGI_END_SIZE];

	fcgi_end(0x0102, 0x01020304, out);
	assert_memory_equal(out, want, sizeof(want));
}
