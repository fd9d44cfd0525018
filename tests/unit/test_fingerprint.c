/*
 * fingerprint: specs, hashes made by other means, what makes a difference
 * and what does not.
 */
#include "config.h"

#include "cases.h"

#include "body_fixture.h"
#include "conf_fixture.h"
#include "fingerprint.h"
#include "limit.h"
#include "out.h"

#define MAX_ITEMS 5

/* --- fingerprint specs -------------------------------------------------- */

static const struct {
	const char *name;
	enum conf_fingerprint how;
	const char *headers[MAX_ITEMS + 1], *ignore[MAX_ITEMS + 1];
	enum rc rc;
	const char *spec;
} specs[] = {
	{ "json", CONF_FINGERPRINT_VALUE, { NULL }, { NULL }, RC_OK,
	    "2 value\n" },
	{ "exact", CONF_FINGERPRINT_EXACT, { NULL }, { NULL }, RC_OK,
	    "1 exact\n" },
	{ "fields in lower case and sorted", CONF_FINGERPRINT_EXACT,
	    { "X-B", "Content-Language", "x-a" }, { NULL }, RC_OK,
	    "1 exact\nh content-language\nh x-a\nh x-b\n" },
	{ "the same field twice", CONF_FINGERPRINT_VALUE,
	    { "X-A", "X-B", "x-a", "X-A" }, { NULL }, RC_OK,
	    "2 value\nh x-a\nh x-b\n" },
	{ "pointers sorted, case kept, none twice", CONF_FINGERPRINT_VALUE,
	    { NULL }, { "/b", "/a/B", "/b", "/a" }, RC_OK,
	    "2 value\ni /a\ni /a/B\ni /b\n" },
	{ "fields before pointers", CONF_FINGERPRINT_VALUE, { "X-A" },
	    { "/a b" }, RC_OK, "2 value\nh x-a\ni /a b\n" },
	{ "pointers mean nothing to exact bytes", CONF_FINGERPRINT_EXACT,
	    { "X-A" }, { "/a" }, RC_OK, "1 exact\nh x-a\n" },
	{ "none", CONF_FINGERPRINT_NONE, { "X-A" }, { "/a" }, RC_OK,
	    "3 none\nh x-a\n" },
};

TEST(fingerprint_spec_of_a_route)
{
	struct conf_route route;
	enum rc rc;
	size_t i;

	for (i = 0; i < COUNT(specs); i++) {
		memset(&route, 0, sizeof(route));
		route.fingerprint = specs[i].how;
		route.fingerprint_headers = list_of(specs[i].headers);
		route.fingerprint_ignore = list_of(specs[i].ignore);
		out_new(1000);
		assert_ok(buf_adds(&out, "before"));
		rc = fingerprint_spec_write(&route, &out);
		if (rc != specs[i].rc)
			fail_msg("%s: %s", specs[i].name, rc_text(rc));
		if (strcmp(out.data, specs[i].spec) != 0)
			fail_msg("%s: %s", specs[i].name, out.data);
		list_free(&route.fingerprint_headers);
		list_free(&route.fingerprint_ignore);
	}
}

TEST(spec_names_the_places_of_a_key_that_could_count)
{
	static const struct {
		const char *options, *fingerprint_spec;
	} places[] = {
		{ "key_from = header:X cookie:Y header:A+cookie:B",
		    "2 value\n" },
		{ "key_from = header:X query:b form:a",
		    "2 value\nk form:a\nk query:b\n" },
		{ "key_from = form:a query:b form:a header:X",
		    "2 value\nk form:a\nk query:b\n" },
		{ "key_from = header:A+json:/a%20b",
		    "2 value\nk header:A+json:/a%20b\n" },
		{ "key_from = query:a\nfingerprint = exact",
		    "2 exact\nk query:a\n" },
		{ "key_from = header:a\nfingerprint = exact", "1 exact\n" },
		{ "key_from = query:a\nfingerprint = none\n"
		  "fingerprint_headers = X-A",
		    "3 none\nh x-a\n" },
	};
	struct conf *conf;
	char text[256];
	size_t i;

	for (i = 0; i < COUNT(places); i++) {
		snprintf(
		    text, sizeof(text), "[defaults]\n%s\n", places[i].options);
		conf = conf_from(text);
		out_new(1000);
		assert_ok(fingerprint_spec_write(&conf->defaults, &out));
		assert_string_equal(out.data, places[i].fingerprint_spec);
		conf_unref(conf);
	}
}

TEST(fingerprint_spec_that_does_not_fit)
{
	char name[] = "X-A";
	char *item[] = { name, NULL };
	struct conf_route route = {
		.fingerprint = CONF_FINGERPRINT_VALUE,
		.fingerprint_headers = { item, 1 },
	};
	size_t max;

	for (max = 0; max < sizeof("2 value\nh x-a\n") - 1; max++) {
		out_new(max);
		assert_int_equal(
		    fingerprint_spec_write(&route, &out), RC_LIMIT);
		assert_int_equal(out.len, 0);
	}
}

/* --- hashes ----------------------------------------------------------- */

struct spec {
	const char *method, *path, *query, *type; /* type NULL: none */
	struct param params[3];
	const char *body;
};

static const char *key = "k";

static enum rc
hash_of(const struct request *req, const char *fingerprint_spec,
    unsigned char *hash)
{
	struct fingerprint_of of = {
		.req = req, .key = key, .read = read_body
	};
	struct json *json = NULL;
	enum rc rc;

	if (req->body != NULL && fingerprint_needs_json(req, fingerprint_spec))
		assert_int_not_equal(
		    json_read(&json, req->body, req->body_len), JSON_NO_MEMORY);
	of.json = json;
	rc = fingerprint_make(&of, fingerprint_spec, hash);
	json_free(json);
	return rc;
}

/* A whole request of a spec, its body in memory of its exact size. */
static enum rc
make(const struct spec *s, const char *fingerprint_spec, unsigned char *hash)
{
	struct param params[COUNT(s->params) + 1];
	size_t n = 0, i;
	struct request req = { .body_fd = -1 };
	char *body;
	enum rc rc;

	if (s->type != NULL)
		params[n++] = (struct param){ "CONTENT_TYPE", s->type };
	for (i = 0; i < COUNT(s->params) && s->params[i].name != NULL; i++)
		params[n++] = s->params[i];
	req.params = params;
	req.nparams = n;
	req.method = s->method;
	req.path = s->path;
	req.query = s->query;
	req.body_len = strlen(s->body);
	body = exact_copy(s->body, req.body_len);
	req.body = req.body_len > 0 ? body : NULL;
	memset(hash, 0, FINGERPRINT_LEN);
	rc = hash_of(&req, fingerprint_spec, hash);
	free(body);
	return rc;
}

static const struct {
	const char *name, *fingerprint_spec;
	struct spec spec;
	const char *digest;
} vectors[] = {
	{ "nothing but a method and a path", "2 value\n",
	    { "POST", "/", "", NULL, { { 0 } }, "" },
	    "d433e9bfa7c85c27c66b3fcfadb5c44e" },
	{ "JSON", "2 value\n",
	    { "POST", "/pay", "a=1", "application/json; charset=utf-8",
		{ { 0 } }, "{\"b\": 1.50, \"a\": [ ]}" },
	    "8b35968a2d4a0d9443467cbd52e713d6" },
	{ "exact, with fields", "1 exact\nh content-type\nh x-a\nh x-b\n",
	    { "PATCH", "/pay", "", "Text/Plain;x",
		{ { "HTTP_X_B", "1" }, { "HTTP_X_B", "" } }, "hello" },
	    "da3a0af94fcbc1c5d920932d9f186b34" },
	{ "JSON with a member left out", "2 value\ni /ts\n",
	    { "POST", "/pay", "", "application/x+json", { { 0 } },
		"{\"ts\":1,\"a\":2}" },
	    "bd2536dab02fe79e4565070d4fcf461a" },
};

/* A change of these orphans the keys that were made before it. */
TEST(hashes_made_by_other_means)
{
	unsigned char hash[FINGERPRINT_LEN];
	char hex[2 * FINGERPRINT_LEN + 1];
	size_t i, k;

	for (i = 0; i < COUNT(vectors); i++) {
		assert_ok(
		    make(&vectors[i].spec, vectors[i].fingerprint_spec, hash));
		for (k = 0; k < FINGERPRINT_LEN; k++)
			snprintf(hex + 2 * k, 3, "%02x", hash[k]);
		if (strcmp(hex, vectors[i].digest) != 0)
			fail_msg("%s: %s", vectors[i].name, hex);
	}
}

#define JSON     "application/json"
#define BASE     "POST", "/pay", "a=1"
#define RJSON    "2 value\n"
#define REXCT    "1 exact\n"
#define RHEAD    "2 value\nh x-a\nh x-b\n"
#define RVAL     "2 value\n"
#define RFORM    "2 value\nk form:k\n"
#define RQUERY   "2 value\nk query:k\n"
#define URL      "application/x-www-form-urlencoded"
#define MULTI(b) "multipart/form-data; boundary=" b
#define FORM     "Content-Disposition: form-data; "
#define FILE1(b, head, data) \
	"--" b "\r\n" FORM head "\r\n\r\n" data "\r\n--" b "--\r\n"
#define FILE2(one, two)                                    \
	"--B\r\n" FORM one "\r\n\r\nk\r\n--B\r\n" FORM two \
	"\r\n\r\nk\r\n--B--\r\n"
#define RIGNO "2 value\ni /meta/ts\n"

#define BODY(type, body)                    \
	{                                   \
		BASE, type, { { 0 } }, body \
	}
#define PART(b, head, data) BODY(MULTI(b), FILE1(b, head, data))
#define FIELDS(...)                               \
	{                                         \
		BASE, JSON, { __VA_ARGS__ }, "{}" \
	}
#define AT(path, query)                                  \
	{                                                \
		"POST", path, query, NULL, { { 0 } }, "" \
	}

static const struct {
	const char *name, *fingerprint_spec;
	bool same;
	struct spec a, b;
} pairs[] = {
	{ "the very same", RJSON, true, BODY(JSON, "{}"), BODY(JSON, "{}") },
	{ "other method", RJSON, false, BODY(JSON, "{}"),
	    { "PATCH", "/pay", "a=1", JSON, { { 0 } }, "{}" } },
	{ "other path", RJSON, false, BODY(JSON, "{}"),
	    { "POST", "/pay/", "a=1", JSON, { { 0 } }, "{}" } },
	{ "other query string", RJSON, false, BODY(JSON, "{}"),
	    { "POST", "/pay", "a=2", JSON, { { 0 } }, "{}" } },
	{ "bytes moved from path to query string", RJSON, false,
	    AT("/paya", "=1"), AT("/pay", "a=1") },
	{ "bytes moved from query string to body", RJSON, false,
	    { "POST", "/", "ab", NULL, { { 0 } }, "c" },
	    { "POST", "/", "a", NULL, { { 0 } }, "bc" } },
	{ "field that does not count", RJSON, true, FIELDS({ "HTTP_X_A", "1" }),
	    FIELDS({ "HTTP_X_A", "2" }) },
	{ "field that counts", RHEAD, false, FIELDS({ "HTTP_X_A", "1" }),
	    FIELDS({ "HTTP_X_A", "2" }) },
	{ "field that counts, missing and empty", RHEAD, false,
	    FIELDS({ "HTTP_X_A", "" }), BODY(JSON, "{}") },
	{ "value in another field", RHEAD, false, FIELDS({ "HTTP_X_A", "1" }),
	    FIELDS({ "HTTP_X_B", "1" }) },
	{ "order of different fields", RHEAD, true,
	    FIELDS({ "HTTP_X_A", "1" }, { "HTTP_X_B", "2" }),
	    FIELDS({ "HTTP_X_B", "2" }, { "HTTP_X_A", "1" }) },
	{ "order of repeats", RHEAD, false,
	    FIELDS({ "HTTP_X_A", "1" }, { "HTTP_X_A", "2" }),
	    FIELDS({ "HTTP_X_A", "2" }, { "HTTP_X_A", "1" }) },
	{ "repeats and one value", RHEAD, false,
	    FIELDS({ "HTTP_X_A", "1" }, { "HTTP_X_A", "2" }),
	    FIELDS({ "HTTP_X_A", "12" }) },
	{ "type in another case", RJSON, true,
	    BODY("Application/JSON", "[1, 2]"), BODY(JSON, "[1,2]") },
	{ "type with parameters and blanks", RJSON, true,
	    BODY(" application/json ; charset=utf-8", "[1, 2]"),
	    BODY(JSON, "[1,2]") },
	{ "other type", RJSON, false, BODY(JSON, "{}"),
	    BODY("text/json", "{}") },
	{ "type missing and empty", RJSON, true, BODY("", "{}"),
	    BODY(NULL, "{}") },
	{ "the same JSON value", RJSON, true,
	    BODY(JSON, "{\"b\": [1.0], \"a\": \"\\u0061\"}"),
	    BODY(JSON, "{\"a\":\"a\",\"b\":[10e-1]}") },
	{ "the same JSON value, exact", REXCT, false, BODY(JSON, "[1, 2]"),
	    BODY(JSON, "[1,2]") },
	{ "the same bytes, exact", REXCT, true, BODY(JSON, "[1, 2]"),
	    BODY(JSON, "[1, 2]") },
	{ "the same JSON value, a type of +json", RJSON, true,
	    BODY("application/vnd.a.b+JSON;v=1", "[1, 2]"),
	    BODY("application/vnd.a.b+json", "[1,2]") },
	{ "type that only looks like JSON", RJSON, false,
	    BODY("application/jsonx", "[1, 2]"),
	    BODY("application/jsonx", "[1,2]") },
	{ "type with json in the middle", RJSON, false,
	    BODY("application/x+json2", "[1, 2]"),
	    BODY("application/x+json2", "[1,2]") },
	{ "type of JSON Lines", RJSON, false,
	    BODY("application/json-seq", "[1, 2]"),
	    BODY("application/json-seq", "[1,2]") },
	{ "other JSON value", RJSON, false,
	    BODY(JSON, "{\"a\":9007199254740993}"),
	    BODY(JSON, "{\"a\":9007199254740992}") },
	{ "not I-JSON: exact bytes, the same", RJSON, true,
	    BODY(JSON, "{\"a\":1,\"a\":1}"), BODY(JSON, "{\"a\":1,\"a\":1}") },
	{ "not I-JSON: exact bytes, others", RJSON, false,
	    BODY(JSON, "{\"a\":1,\"a\":1}"), BODY(JSON, "{\"a\":1, \"a\":1}") },
	{ "no body, and a blank", RJSON, false, BODY(JSON, ""),
	    BODY(JSON, " ") },
	{ "what is left out differs", RIGNO, true,
	    BODY(JSON, "{\"meta\":{\"ts\":1,\"x\":2}}"),
	    BODY(JSON, "{\"meta\":{\"x\":2,\"ts\":[3]}}") },
	{ "what is left out is not there", RIGNO, true,
	    BODY(JSON, "{\"meta\":{\"ts\":1,\"x\":2}}"),
	    BODY(JSON, "{\"meta\":{\"x\":2}}") },
	{ "its neighbour differs", RIGNO, false,
	    BODY(JSON, "{\"meta\":{\"ts\":1,\"x\":2}}"),
	    BODY(JSON, "{\"meta\":{\"ts\":1,\"x\":3}}") },
	{ "nothing is left out of exact bytes", RIGNO, false,
	    BODY("text/plain", "{\"meta\":{\"ts\":1}}"),
	    BODY("text/plain", "{\"meta\":{\"ts\":2}}") },
	/* version 2 */
	{ "multipart, another boundary", RVAL, true, PART("B", "name=a", "1"),
	    PART("xyz", "name=a", "1") },
	{ "multipart, exact, another boundary", "2 exact\n", false,
	    PART("B", "name=a", "1"), PART("C", "name=a", "1") },
	{ "multipart, other spelling of the head", RVAL, true,
	    PART("B", "name=a;filename=f", "1"),
	    PART("B",
		"filename=\"f\"; name=\"a\"\r\nX-Y: z\r\n"
		"content-type: Text/Plain; charset=utf-8",
		"1") },
	{ "multipart, other bytes", RVAL, false, PART("B", "name=a", "1"),
	    PART("B", "name=a", "2") },
	{ "multipart, other name", RVAL, false, PART("B", "name=a", "1"),
	    PART("B", "name=b", "1") },
	{ "multipart, other file name", RVAL, false,
	    PART("B", "name=a;filename=f", "1"),
	    PART("B", "name=a;filename=g", "1") },
	{ "multipart, other extended file name", RVAL, false,
	    PART("B", "name=a;filename=f;filename*=UTF-8''%61", "1"),
	    PART("B", "name=a;filename=f;filename*=UTF-8''%62", "1") },
	{ "multipart, file name in a continuation line", RVAL, false,
	    PART("B", "name=a;\r\n filename=f", "1"),
	    PART("B", "name=a;\r\n filename=g", "1") },
	{ "multipart, empty file name and none", RVAL, false,
	    PART("B", "name=a;filename=\"\"", "1"), PART("B", "name=a", "1") },
	{ "multipart, other media type", RVAL, false, PART("B", "name=a", "1"),
	    PART("B", "name=a\r\nContent-Type: image/png", "1") },
	{ "multipart, other order", RVAL, false,
	    BODY(MULTI("B"), FILE2("name=a", "name=b")),
	    BODY(MULTI("B"), FILE2("name=b", "name=a")) },
	{ "multipart, bytes moved to the next part", RVAL, false,
	    BODY(MULTI("B"),
		"--B\r\n" FORM "name=a\r\n\r\n12\r\n--B\r\n" FORM
		"name=b\r\n\r\n3\r\n--B--"),
	    BODY(MULTI("B"),
		"--B\r\n" FORM "name=a\r\n\r\n1\r\n--B\r\n" FORM
		"name=b\r\n\r\n23\r\n--B--") },
	{ "multipart that cannot be parsed, another boundary", RVAL, false,
	    BODY(MULTI("B"), "--B\r\nx"), BODY(MULTI("C"), "--C\r\nx") },
	{ "multipart that cannot be parsed, the same bytes", RVAL, true,
	    BODY(MULTI("B"), "--B\r\nx"), BODY(MULTI("C"), "--B\r\nx") },
	{ "multipart and urlencoded", RVAL, false, BODY(MULTI("B"), "--B--"),
	    BODY(URL, "") },
	{ "the part that is the key", RFORM, true,
	    BODY(MULTI("B"), FILE2("name=a", "name=k")),
	    PART("B", "name=a", "k") },
	{ "the part that could be the key, and is not", RFORM, false,
	    PART("B", "name=k", "x"), BODY(MULTI("B"), "--B--") },
	{ "the field that is the key", RFORM, true, BODY(URL, "a=1&%6b=k&b=2"),
	    BODY(URL, "a=1&b=2") },
	{ "the field that is the key, alone", RFORM, true, BODY(URL, "k=%6b"),
	    BODY(URL, "") },
	{ "the field that is the key, first and last", RFORM, true,
	    BODY(URL, "k=k&a=1"), BODY(URL, "a=1&k=k") },
	{ "the field that could be the key, and is not", RFORM, false,
	    BODY(URL, "a=1&k=x"), BODY(URL, "a=1&k=y") },
	{ "two such fields are no key", RFORM, false, BODY(URL, "k=k&k=k"),
	    BODY(URL, "") },
	{ "urlencoded bytes count exactly", RFORM, false, BODY(URL, "a=%41"),
	    BODY(URL, "a=A") },
	{ "the field that is the key, exact", "2 exact\nk form:k\n", false,
	    BODY(URL, "k=k&a=1"), BODY(URL, "a=1&k=k") },
	{ "the parameter that is the key", RQUERY, true, AT("/", "a=1&k=k&b"),
	    AT("/", "a=1&b") },
	{ "the parameter that is not the key", RQUERY, false,
	    AT("/", "a=1&k=x"), AT("/", "a=1") },
	{ "the parameter that is the key, exact", "2 exact\nk query:k\n", true,
	    AT("/", "k=k"), AT("/", "") },
	{ "the member that is the key, as number and string",
	    "2 value\n"
	    "k json:/id\n",
	    true, BODY(JSON, "{\"id\":\"k\",\"a\":1}"),
	    BODY(JSON, "{\"a\":1}") },
	{ "two that are the key together", "2 value\nk query:a+query:b\n",
	    false, AT("/", "a=k&b=k"), AT("/", "") },
	{ "none: neither body nor media type", "3 none\n", true,
	    BODY(JSON, "{}"), BODY(URL, "a=1") },
	{ "none: nor does the query", "3 none\n", true, AT("/", "a"),
	    AT("/", "b") },
	{ "none: fields count", "3 none\nh x-a\n", false,
	    { BASE, JSON, { { "HTTP_X_A", "1" } }, "" },
	    { BASE, JSON, { { "HTTP_X_A", "2" } }, "" } },
};

TEST(what_makes_a_difference)
{
	unsigned char a[FINGERPRINT_LEN], b[FINGERPRINT_LEN];
	size_t i;

	for (i = 0; i < COUNT(pairs); i++) {
		assert_ok(make(&pairs[i].a, pairs[i].fingerprint_spec, a));
		assert_ok(make(&pairs[i].b, pairs[i].fingerprint_spec, b));
		if ((memcmp(a, b, sizeof(a)) == 0) != pairs[i].same)
			fail_msg("%s", pairs[i].name);
		/* However the body comes. */
		for (part = 1; part < 10; part += 3) {
			assert_ok(
			    make(&pairs[i].a, pairs[i].fingerprint_spec, b));
			assert_memory_equal(a, b, sizeof(a));
		}
		part = SIZE_MAX;
	}
}

/* A body whose canonical form is another body's exact bytes. */
TEST(canonical_and_exact_bodies_differ)
{
	const struct spec s = { BASE, JSON, { { 0 } }, "[1,2]" };
	unsigned char a[FINGERPRINT_LEN], b[FINGERPRINT_LEN];

	assert_ok(make(&s, RJSON, a));
	assert_ok(make(&s, REXCT, b));
	assert_memory_not_equal(a, b, sizeof(a));
}

TEST(body_that_cannot_be_read)
{
	unsigned char hash[FINGERPRINT_LEN];
	struct request req = {
		.method = "POST",
		.path = "/",
		.query = "",
		.body_len = 1,
		.body_fd = -1,
	};

	assert_int_equal(hash_of(&req, RJSON, hash), RC_IO);
}

static const char *const unknown[] = {
	/* versions and ways */
	"", "2 value", "3 value\n",
	/* a word of another version */
	"2 json\n", "1 value\n", "2 none\n", "3 none\nk query:a\n",
	"1 exact\nk query:a\n", "2 value\nk body:a\n", "2 value\nk query:\n",
	"1 json\n", "12 value\n", "1 xml\n", "2 value \n", "1 JSON\n",
	/* lines */
	"2 value\n\n", "2 value\nq x\n", "2 value\nhx\n", "2 value\nh \n",
	"2 value\ni \n", "2 value\ni a\n", "2 value\nh x-a"
};

TEST(fingerprint_spec_that_is_not_known)
{
	const struct spec s = { BASE, JSON, { { 0 } }, "{}" };
	unsigned char hash[FINGERPRINT_LEN];
	size_t i;

	for (i = 0; i < COUNT(unknown); i++)
		if (make(&s, unknown[i], hash) != RC_VERSION)
			fail_msg("%s", unknown[i]);

	out_new(10000);
	assert_ok(buf_adds(&out, RJSON));
	for (i = 0; i < LIMIT_CONF_LIST; i++)
		assert_ok(buf_addf(&out, "h x-%zu\n", i));
	assert_ok(make(&s, out.data, hash));
	assert_ok(buf_adds(&out, "h x\n"));
	assert_int_equal(make(&s, out.data, hash), RC_VERSION);

	buf_clear(&out);
	assert_ok(buf_adds(&out, RJSON "h "));
	for (i = 0; i < 2000; i++)
		assert_ok(buf_addc(&out, 'x'));
	assert_ok(buf_addc(&out, '\n'));
	assert_int_equal(make(&s, out.data, hash), RC_VERSION);
}
