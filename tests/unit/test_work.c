/*
 * work: what a stranger's bytes cost grows with their number alone.
 *
 * The parsers are built once more, to count each branch that they take and each
 * byte that they hand to the C library.  Twice the bytes may take little more
 * than twice the work, whatever their shape.
 */
#include "config.h"

#include "cases.h"

#include "cgihead.h"
#include "fingerprint.h"
#include "html.h"
#include "json.h"
#include "key.h"
#include "key_search.h"
#include "limit.h"
#include "prefer.h"

#define MAX (4 << 20)

/* --- the counter ------------------------------------------------------- */

static uint64_t work;

void __sanitizer_cov_trace_pc(void);
void
__sanitizer_cov_trace_pc(void)
{
	work++;
}

/* clang-format off */
#define COUNTED(type, name, parameters, arguments, cost) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		work += (cost); \
		return __real_##name arguments; \
	}
COUNTED(void *, memcpy, (void *to, const void *s, size_t n), (to, s, n), n)
COUNTED(void *, memmove, (void *to, const void *s, size_t n), (to, s, n), n)
COUNTED(void *, memset, (void *to, int c, size_t n), (to, c, n), n)
COUNTED(void *, memchr, (const void *s, int c, size_t n), (s, c, n),
    __real_memchr(s, c, n) != NULL
	? (size_t)((char *)__real_memchr(s, c, n) - (const char *)s) : n)
COUNTED(size_t, strlen, (const char *s), (s), __real_strlen(s))
COUNTED(size_t, strspn, (const char *s, const char *set), (s, set),
    __real_strspn(s, set))
COUNTED(size_t, strcspn, (const char *s, const char *set), (s, set),
    __real_strcspn(s, set))
COUNTED(int, EVP_DigestUpdate, (void *md, const void *s, size_t n), (md, s, n),
    n)
/* clang-format on */

/* --- the shapes -------------------------------------------------------- */

/* A text of about n bytes: begin, then times(part) joined, then end.  A '#' of
 * a part is its number. */
struct shape {
	const char *begin, *part, *end;
};

static void
fill(struct buf *out, const struct shape *shape, size_t n)
{
	const char *p;
	size_t i;

	buf_clear(out);
	assert_ok(buf_adds(out, shape->begin));
	for (i = 0; out->len < n; i++)
		for (p = shape->part; *p != '\0'; p++)
			assert_ok(*p == '#'
				? buf_addf(out, "%06zu", i * 7919 % 999983)
				: buf_addc(out, *p));
	assert_ok(buf_adds(out, shape->end));
}

/* two: the work for twice as many bytes.  A reader that refuses at a depth of
 * 128 counts the least, some 700. */
static void
compare(const char *name, const char *shape, uint64_t one, uint64_t two)
{
	if (one < 500)
		fail_msg("%s of %s: only %ju", name, shape, (uintmax_t)one);
	if (two > one / 100 * 230)
		fail_msg("%s of %s: %ju, and %ju for twice as much", name,
		    shape, (uintmax_t)one, (uintmax_t)two);
}

/* Measures f for each shape. */
static void
measure(const char *name, void (*f)(const struct buf *),
    const struct shape *shape, size_t shapes, size_t n)
{
	uint64_t done[2];
	struct buf text;
	size_t i, k;

	for (i = 0; i < shapes; i++) {
		for (k = 0; k < 2; k++) {
			buf_init(&text, MAX);
			fill(&text, &shape[i], n << k);
			work = 0;
			f(&text);
			done[k] = work;
			buf_free(&text);
		}
		compare(name, shape[i].part, done[0], done[1]);
	}
}

/* --- JSON -------------------------------------------------------------- */

static void
json_work(const struct buf *text)
{
	char path[] = "/a/a/x", index[] = "/3";
	char *item[] = { path, index };
	const struct conf_list ignore = { item, 2 };
	struct json *json;
	struct buf out;

	buf_init(&out, MAX);
	if (json_read(&json, text->data, text->len) == JSON_OK) {
		(void)json_find(json, "/a/a/a/a/9999999/x", &out);
		buf_clear(&out);
		assert_ok(json_canonical(json, &ignore, &out));
	}
	json_free(json);
	buf_free(&out);
}

/* Puts the text inside members that are out of order at many levels. */
static void
nest(struct buf *text)
{
	struct buf inner = *text;
	int i;

	buf_init(text, MAX);
	for (i = 0; i < 120; i++)
		assert_ok(buf_adds(text, "{\"z\":0,\"id\":\"e\",\"a\":"));
	assert_ok(buf_add(text, inner.data, inner.len));
	for (i = 0; i < 120; i++)
		assert_ok(buf_addc(text, '}'));
	buf_free(&inner);
}

static void
depth_costs_nothing(const struct shape *shape)
{
	struct buf text;
	uint64_t flat;

	buf_init(&text, MAX);
	fill(&text, shape, 100000);
	work = 0;
	json_work(&text);
	flat = work;
	nest(&text);
	work = 0;
	json_work(&text);
	if (work > 3 * flat + 100000)
		fail_msg("%s: %ju, and nested %ju", shape->part,
		    (uintmax_t)flat, (uintmax_t)work);
	buf_free(&text);
}

TEST(json_of_any_shape)
{
	static const struct shape shapes[] = {
		{ "[0", ",1", "]" },
		{ "[0", ",[1,{}]", "]" },
		{ "[0", ",{\"b\":{\"d\":1,\"c\":1},\"a\":2}", "]" },
		{ "{\"a\":0", ",\"#\":1", "}" },
		{ "{\"a\":0", ",\"#\":{\"#\":1,\"\":0}", "}" },
		{ "{\"\":0", ",\"\":0", "}" },
		{ "[", "[", "" },
		{ "\"", "\\n", "\"" },
		{ "\"", "\\u0001\\ud83d\\ude00", "\"" },
		{ "1", "0", "e5" },
		{ "1e", "9", "" },
		{ "0.", "0", "1" },
		{ "{\"", "a", "\":1,\"b\":2}" },
	};
	size_t i;

	measure("JSON", json_work, shapes, COUNT(shapes), 100000);
	for (i = 0; i < COUNT(shapes); i++)
		depth_costs_nothing(&shapes[i]);
}

/* Address Sanitizer reads the rest of the text at each member. */
#define MEMBERS 20000

/* The work for an object of n members, in order or mixed up. */
static uint64_t
work_of_members(size_t n, const char *begin, size_t step)
{
	struct buf text;

	buf_init(&text, MAX);
	for (size_t i = 0; i < n; i++)
		assert_ok(buf_addf(&text, "%s\"%s%06zu\":1", i == 0 ? "{" : ",",
		    begin, i * step % n));
	assert_ok(buf_addc(&text, '}'));
	work = 0;
	json_work(&text);
	buf_free(&text);
	return work;
}

TEST(order_of_json_costs_little)
{
	static const char *const begin[] = { "", "common/beginning/" };
	uint64_t sorted, mixed;

	for (size_t i = 0; i < COUNT(begin); i++) {
		sorted = work_of_members(MEMBERS, begin[i], 1);
		mixed = work_of_members(MEMBERS, begin[i], 7919);
		if (mixed > 2 * sorted)
			fail_msg("\"%s\": %ju in order, and %ju mixed up",
			    begin[i], (uintmax_t)sorted, (uintmax_t)mixed);
	}
}

/* --- forms and heads of requests --------------------------------------- */

static const char *type;
static struct conf *conf;

static enum rc
read_whole(const struct request *rq, request_take_fn *take, void *arg)
{
	return take(arg, rq->body, rq->body_len);
}

/* Searches the text, as query, cookies, fields and body, for the key, and makes
 * the fingerprint. */
static void
request_work(const struct buf *text)
{
	const struct conf_route *route = &conf->defaults;
	const struct param params[] = { { "CONTENT_TYPE", type },
		{ "HTTP_COOKIE", text->data }, { "HTTP_PREFER", text->data },
		{ "HTTP_ACCEPT", text->data }, { "HTTP_H", text->data } };
	const struct request rq = { .params = params,
		.nparams = COUNT(params),
		.method = "POST",
		.path = "/",
		.query = text->data,
		.body = text->data,
		.body_len = text->len,
		.body_fd = -1 };
	unsigned char out[FINGERPRINT_LEN];
	const struct fingerprint_of of = {
		.req = &rq, .key = "k", .read = read_whole
	};
	struct key_search s;
	struct buf spec;

	assert_ok(key_search_init(
	    &s, &route->key_from, route->key_syntax, &rq, NULL));
	if (key_search_needs(&s, true) == KEY_NEEDS_FORM) {
		assert_ok(key_search_form(&s, &rq, read_whole));
	}
	key_search_free(&s);
	(void)prefer_respond_async(&rq);
	(void)prefer_html(&rq);

	buf_init(&spec, LIMIT_FINGERPRINT_SPEC);
	assert_ok(fingerprint_spec_write(route, &spec));
	assert_ok(fingerprint_make(&of, spec.data, out));
	buf_free(&spec);
}

TEST(forms_and_fields_of_any_shape)
{
	static const char text[] =
	    "[defaults]\n"
	    "key_from = header:H cookie:a query:k form:k+query:l form:k\n";
	static const struct shape shapes[] = {
		{ "", "&", "" },
		{ "", "k=1&", "" },
		{ "", "%6b", "=1" },
		{ "", "a", "" },
		{ "k=", "+%41", "" },
		{ "", ";", "" },
		{ "", "a ", "" },
		{ "", "a;", "" },
		{ "", "a = b ; ", "" },
		{ "a=", " ", "" },
		{ "", "a, ", "" },
		{ "text/html", ";q=1", "" },
		{ "text/html", "; a=\"\\\"\"", "" },
		{ "", "respond-async;a=b, ", "" },
		{ "\"", "\\\"", "\"" },
		{ "\"k\"", ";a=1", "" },
		{ "\"k\"", ";a=:aaaa:", "" },
	};
	static const struct shape parts[] = {
		{ "--b\r\n",
		    "Content-Disposition: form-data; name=\"k\"; "
		    "filename=\"f\"\r\n\r\n1\r\n--b\r\n",
		    "" },
		{ "--b\r\nContent-Disposition: form-data; name=k\r\n\r\n",
		    "\r\n--", "\r\n--b--\r\n" },
		{ "--b\r\nContent-Disposition: form-data; name=k\r\n\r\n", "\r",
		    "\r\n--b--\r\n" },
		{ "", "\r\n-", "--b\r\n" },
	};
	static const struct shape heads[] = {
		{ "--b\r\nContent-Disposition: form-data; name=k",
		    ";\r\n a=\"b\"", "\r\n\r\n" },
		{ "--b\r\nContent-Disposition: form-data; name=k\r\n",
		    "A: b\r\n", "\r\n" },
	};
	struct conf_error err;

	conf = conf_parse("f", text, sizeof(text) - 1, &err);
	assert_non_null(conf);
	type = "application/x-www-form-urlencoded";
	measure("a form", request_work, shapes, COUNT(shapes), 20000);
	type = "multipart/form-data; boundary=b";
	measure("a multipart form", request_work, parts, COUNT(parts), 50000);
	measure("a part's head", request_work, heads, COUNT(heads), 6000);
	conf_unref(conf);
}

/* --- heads of answers, and pages ---------------------------------------- */

static void
head_work(const struct buf *text)
{
	struct response response;
	struct cgihead head;

	response_init(&response);
	(void)cgihead_parse(text->data, text->len, true, &response, &head);
	response_free(&response);
}

TEST(heads_of_any_shape)
{
	static const struct shape shapes[] = {
		{ "Status: 200\n", "A\n", "\n" },
		{ "Status: 200\nA: 1\n", " b\r\n", "\n" },
		{ "", "\n", "Status: 200\n\n" },
		{ "Status: 200\nConnection: ", "a,", "\n\n" },
		{ "Status: 200\nA: 1\nB: 2\nC: 3\nConnection: ", "x, ",
		    "\n\n" },
		{ "Status: 200\nA:", " b\n", "\n" },
		{ "Status: 200\nA:", " ", "\n\n" },
		{ "Status: ", "2", "\n\n" },
		{ "Content-Type: text/plain\n", "Content-Type: text/plain\n",
		    "\n" },
	};

	measure("a head", head_work, shapes, COUNT(shapes), 30000);
}

static void
page_work(const struct buf *text)
{
	struct buf out;

	buf_init(&out, 8 * MAX);
	assert_ok(html_value(&out, text->data));
	assert_ok(html_lines(&out, text->data, text->len));
	buf_free(&out);
}

TEST(text_of_a_page)
{
	static const struct shape shapes[] = { { "", "<", "" },
		{ "", "\xf0", "" }, { "", "\x01", "" },
		{ "", "\xc3\xa4", "" } };

	measure("a page", page_work, shapes, COUNT(shapes), 50000);
}
