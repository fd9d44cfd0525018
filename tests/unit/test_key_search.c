/*
 * key_search: keys from query, form, JSON, cookie and two places together;
 * what is no key there; and which alternative counts.
 */
#include "config.h"

#include "cases.h"

#include "body_fixture.h"
#include "conf_fixture.h"
#include "key_search.h"
#include "scope.h"
#include "limit.h"

#define URL   "application/x-www-form-urlencoded"
#define JSON  "application/json"
#define MULTI "multipart/form-data; boundary=B"
#define PART(name, value)                                     \
	"--B\r\nContent-Disposition: form-data; name=\"" name \
	"\"\r\n\r\n" value "\r\n"

/* What form_key_sign() makes under that secret. */
static const unsigned char given[SCOPE_SECRET_LEN] = "a secret";
#define FORM_KEY "00000000-0000-8000-964f-f815ae9cb867"

struct row {
	const char *from, *query, *cookie, *header, *type, *body;
	enum key_verdict verdict;
	const char *key; /* KEY_OK */
};

#define QUERY(q)      q, NULL, NULL, NULL, ""
#define COOKIE(c)     "", c, NULL, NULL, ""
#define BODY(type, b) "", NULL, NULL, type, b

static const struct row rows[] = {
	/* query */
	{ "query:k", QUERY("k=a"), KEY_OK, "a" },
	{ "query:k", QUERY("x=1&k=a&y"), KEY_OK, "a" },
	{ "query:k", QUERY("%6b=a+b%2Bc%C3%A4"), KEY_OK, "a b+c\xc3\xa4" },
	{ "query:k", QUERY(""), KEY_ABSENT, NULL },
	{ "query:k", QUERY("kk=a&K=b&x=k"), KEY_ABSENT, NULL },
	{ "query:k", QUERY("k"), KEY_EMPTY, NULL },
	{ "query:k", QUERY("k="), KEY_EMPTY, NULL },
	{ "query:k", QUERY("k=a&k=a"), KEY_TWICE, NULL },
	{ "query:k", QUERY("k=a&k="), KEY_TWICE, NULL },
	{ "query:k", QUERY("k=&k=a"), KEY_TWICE, NULL },
	{ "query:k", QUERY("k=%00"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=a%0Ab"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=%7f"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=%c2%85"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=%c2%a0"), KEY_OK, "\xc2\xa0" },
	{ "query:k", QUERY("k=%e4"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=%c3"), KEY_NOT_TEXT, NULL },
	{ "query:k", QUERY("k=\"a\""), KEY_OK, "\"a\"" },
	{ "query:k%20%2C", QUERY("k+,=a"), KEY_OK, "a" },
	{ "query:k", QUERY("k=0123456789"), KEY_OK, "0123456789" },
	{ "query:k", QUERY("k=0123456789x"), KEY_TOO_LONG, NULL },
	/* forms */
	{ "form:k", BODY(URL, "x=1&k=a%2fb+c"), KEY_OK, "a/b c" },
	{ "form:k", BODY(URL, "x=1"), KEY_ABSENT, NULL },
	{ "form:k", BODY(URL, "k=a&x=1&k=b"), KEY_TWICE, NULL },
	{ "form:k", BODY(URL, "k="), KEY_EMPTY, NULL },
	{ "form:k", BODY("text/plain", "k=a"), KEY_ABSENT, NULL },
	{ "form:k", BODY(NULL, "k=a"), KEY_ABSENT, NULL },
	{ "form:k", BODY(URL, ""), KEY_ABSENT, NULL },
	{ "form:k", "k=q", NULL, NULL, URL, "x=1", KEY_ABSENT, NULL },
	{ "form:k", BODY(MULTI, PART("x", "1") PART("k", "a+b") "--B--"),
	    KEY_OK, "a+b" },
	{ "form:k", BODY(MULTI, PART("x", "1") "--B--"), KEY_ABSENT, NULL },
	{ "form:k", BODY(MULTI, PART("k", "a") PART("k", "a") "--B--"),
	    KEY_TWICE, NULL },
	{ "form:k", BODY(MULTI, PART("k", "") "--B--"), KEY_EMPTY, NULL },
	{ "form:k", BODY(MULTI, PART("k", "a\r\nb") "--B--"), KEY_NOT_TEXT,
	    NULL },
	{ "form:k", BODY(MULTI, PART("k", "a")), KEY_BAD_FORM, NULL },
	{ "form:k", BODY(MULTI, "x"), KEY_BAD_FORM, NULL },
	/* JSON */
	{ "json:/id", BODY(JSON, "{\"id\":\"a\"}"), KEY_OK, "a" },
	{ "json:/id",
	    BODY(JSON, "{\"a\":{\"id\":1},\"id\":\"\\u00e4\\\"\\\\/\"}"),
	    KEY_OK, "\xc3\xa4\"\\/" },
	{ "json:/a/b~1c/1/d~0e",
	    BODY(JSON, "{\"a\":{\"b/c\":[[{}],{\"d~e\":7,\"x\":[1]}]}}"),
	    KEY_OK, "7" },
	{ "json:/0", BODY(JSON, "[\"a\",\"b\"]"), KEY_OK, "a" },
	{ "json:/1", BODY(JSON, "[{\"]\":\"}\"},\"b\"]"), KEY_OK, "b" },
	{ "json:/", BODY(JSON, "{\"\":\"a\"}"), KEY_OK, "a" },
	{ "json:/id", BODY(JSON, "{\"id\":42}"), KEY_OK, "42" },
	{ "json:/id", BODY(JSON, "{\"id\":-0}"), KEY_OK, "0" },
	{ "json:/id", BODY(JSON, "{\"id\":-1200e-2}"), KEY_OK, "-12" },
	{ "json:/id", BODY(JSON, "{\"id\":1.5e3}"), KEY_OK, "1500" },
	{ "json:/id", BODY(JSON, "{\"id\":1e9}"), KEY_OK, "1000000000" },
	{ "json:/id", BODY(JSON, "{\"id\":1e10}"), KEY_TOO_LONG, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":1e99999999999999999999}"),
	    KEY_TOO_LONG, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":9007199254740993}"), KEY_TOO_LONG,
	    NULL },
	{ "json:/id", BODY(JSON, "{\"id\":1.5}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":1e-1}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":1.5e-300}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":null}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":true}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":[\"a\"]}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":{}}"), KEY_NOT_A_KEY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":\"\"}"), KEY_EMPTY, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":\"a\\n\"}"), KEY_NOT_TEXT, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":\"\\u0000\"}"), KEY_NOT_TEXT, NULL },
	{ "json:/id", BODY(JSON, "{\"ID\":\"a\"}"), KEY_ABSENT, NULL },
	{ "json:/id/x", BODY(JSON, "{\"id\":\"a\"}"), KEY_ABSENT, NULL },
	{ "json:/id", BODY(JSON, "\"id\""), KEY_ABSENT, NULL },
	{ "json:/id", BODY(JSON, "[]"), KEY_ABSENT, NULL },
	{ "json:/2", BODY(JSON, "[1,2]"), KEY_ABSENT, NULL },
	{ "json:/01", BODY(JSON, "[1,2]"), KEY_ABSENT, NULL },
	{ "json:/-", BODY(JSON, "[1,2]"), KEY_ABSENT, NULL },
	{ "json:/id", BODY(JSON, ""), KEY_ABSENT, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":\"a\""), KEY_BAD_JSON, NULL },
	{ "json:/id", BODY(JSON, "{\"id\":\"a\",\"id\":\"a\"}"), KEY_BAD_JSON,
	    NULL },
	{ "json:/id", BODY(JSON, "id=a"), KEY_BAD_JSON, NULL },
	{ "json:/id", BODY("application/cloudevents+json", "{\"id\":\"a\"}"),
	    KEY_OK, "a" },
	{ "json:/id", BODY("text/plain; charset=UTF-8", "{\"id\":\"a\"}"),
	    KEY_OK, "a" },
	{ "json:/id", BODY(NULL, "{\"id\":\"a\"}"), KEY_OK, "a" },
	{ "json:/id", BODY("image/png", "{\"id\":\"a\"}"), KEY_ABSENT, NULL },
	{ "json:/id", BODY(URL, "{\"id\":\"a\"}"), KEY_ABSENT, NULL },
	/* cookies */
	{ "cookie:s", COOKIE("s=a"), KEY_OK, "a" },
	{ "cookie:s", COOKIE(" x=1 ; s=\"a=b\" ;y=2"), KEY_OK, "\"a=b\"" },
	{ "cookie:s", COOKIE("S=a; ss=b; s"), KEY_ABSENT, NULL },
	{ "cookie:s", COOKIE("s="), KEY_EMPTY, NULL },
	{ "cookie:s", COOKIE("s=a; s=a"), KEY_TWICE, NULL },
	/* the first that is there */
	{ "header:H query:k", "k=q", NULL, "h", NULL, "", KEY_OK, "h" },
	{ "query:k header:H", "k=q", NULL, "h", NULL, "", KEY_OK, "q" },
	{ "header:H query:k", QUERY("k=q"), KEY_OK, "q" },
	{ "header:H query:k", "k=q", NULL, "\"", NULL, "", KEY_MALFORMED,
	    NULL },
	{ "header:H form:k", "", NULL, "h", MULTI, "broken", KEY_OK, "h" },
	{ "form:k header:H", "", NULL, "h", MULTI, "broken", KEY_BAD_FORM,
	    NULL },
	{ "form:k query:k", "k=q", NULL, NULL, URL, "x=1", KEY_OK, "q" },
	{ "form:k query:k", "k=q", NULL, NULL, URL, "k=f", KEY_OK, "f" },
	{ "json:/id form:k", BODY(URL, "k=f"), KEY_OK, "f" },
	{ "json:/id form:k", BODY(JSON, "{\"id\":1}"), KEY_OK, "1" },
	/* two together */
	{ "query:a+query:b", QUERY("a=x&b=y"), KEY_OK, "x+y" },
	{ "query:a+query:b", QUERY("a=x%2By&b=%25"), KEY_OK, "x%2By+%25" },
	{ "query:a+query:b", QUERY("a=x"), KEY_ABSENT, NULL },
	{ "query:a+query:b", QUERY("a=x&b="), KEY_EMPTY, NULL },
	{ "query:a+query:b", QUERY("a=&c="), KEY_ABSENT, NULL },
	{ "query:a+query:b query:c", QUERY("a=x&c=z"), KEY_OK, "z" },
	{ "query:a+query:b", QUERY("a=12345&b=6789"), KEY_OK, "12345+6789" },
	{ "query:a+query:b", QUERY("a=12345&b=67890"), KEY_TOO_LONG, NULL },
	{ "header:H+form:k", "", NULL, "\"h;\"", URL, "k=f", KEY_OK, "h;+f" },
	{ "json:/s+json:/i", BODY(JSON, "{\"s\":\"//a\",\"i\":7}"), KEY_OK,
	    "//a+7" },
	/* form keys */
	{ "form:once_key", BODY(URL, "once_key=a"), KEY_NOT_GIVEN, NULL },
	{ "form:once_key", BODY(URL, "once_key=" FORM_KEY "1"), KEY_NOT_GIVEN,
	    NULL },
	{ "form:once_key", BODY(URL, "once_key=&once_key=a"), KEY_TWICE, NULL },
	{ "form:once_key", BODY(URL, "once_key="), KEY_EMPTY, NULL },
	{ "form:once_key", BODY(MULTI, PART("once_key", "a") "--B--"),
	    KEY_NOT_GIVEN, NULL },
	{ "query:once_key+query:b", QUERY("once_key=a&b=c"), KEY_NOT_GIVEN,
	    NULL },
	{ "query:once_key", QUERY("once_key=a"), KEY_NOT_GIVEN, NULL },
	{ "query:once_key", QUERY("once_key=" FORM_KEY), KEY_OK, FORM_KEY },
	{ "form:once_key", BODY(URL, "once_key=" FORM_KEY), KEY_OK, FORM_KEY },
	{ "form:once_key", BODY(MULTI, PART("once_key", FORM_KEY) "--B--"),
	    KEY_OK, FORM_KEY },
};

static struct conf *
configured(const char *from)
{
	char text[512];

	snprintf(text, sizeof(text),
	    "[defaults]\nkey_from = %s\nkey_max_length = %d\n", from,
	    strstr(from, "once_key") != NULL ? 255 : 10);
	return conf_from(text);
}

static enum key_verdict
find(const struct conf_route *route, const struct row *row, struct key *key)
{
	const struct conf_source *source;
	struct param params[3];
	struct request rq = { .params = params,
		.method = "POST",
		.path = "/",
		.query = row->query,
		.body = row->body,
		.body_len = strlen(row->body),
		.body_fd = -1 };
	struct key_search search;
	enum key_verdict verdict;
	struct json *json;

	if (row->cookie != NULL)
		params[rq.nparams++] =
		    (struct param){ "HTTP_COOKIE", row->cookie };
	if (row->header != NULL)
		params[rq.nparams++] = (struct param){ "HTTP_H", row->header };
	if (row->type != NULL)
		params[rq.nparams++] =
		    (struct param){ "CONTENT_TYPE", row->type };
	assert_ok(key_search_init(
	    &search, &route->key_from, route->key_syntax, &rq, given));
	switch (key_search_needs(&search, false)) {
	case KEY_NEEDS_NOTHING:
		break;
	case KEY_NEEDS_FORM:
		assert_ok(key_search_form(&search, &rq, read_body));
		break;
	case KEY_NEEDS_JSON:
		assert_int_not_equal(
		    json_read(&json, row->body, rq.body_len), JSON_NO_MEMORY);
		assert_ok(key_search_json(&search, json));
		json_free(json);
		break;
	}
	verdict = key_search_find(&search, route, key, &source);
	if (verdict == KEY_OK && route->key_from.n == 1)
		assert_true(key_search_has(&search, 0, key->text));
	if (route->key_from.n == 1)
		assert_false(key_search_has(&search, 0, "other"));
	key_search_free(&search);
	return verdict;
}

TEST(every_place_and_what_is_no_key_there)
{
	enum key_verdict verdict;
	struct conf *conf;
	struct key key;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		conf = configured(rows[i].from);
		for (part = 1; part < 100; part += 7) {
			verdict = find(&conf->defaults, &rows[i], &key);
			if (verdict != rows[i].verdict)
				fail_msg("row %zu: %s: %s", i, rows[i].from,
				    key_verdict_text(verdict));
			if (strcmp(key.text,
				rows[i].key != NULL ? rows[i].key : "") != 0)
				fail_msg("row %zu: \"%s\"", i, key.text);
			assert_int_equal(key.len, strlen(key.text));
		}
		conf_unref(conf);
	}
}

/* ... for the memory of a key, not that of the field. */
TEST(a_field_of_any_length_is_bounded)
{
	struct conf *conf = configured("form:k");
	struct row row = { "form:k", "", NULL, NULL, URL, NULL, KEY_TOO_LONG,
		NULL };
	char *body = malloc(1 << 20);
	struct key key;

	assert_non_null(body);
	memset(body, 'a', 1 << 20);
	memcpy(body, "k=", 2);
	body[(1 << 20) - 1] = '\0';
	row.body = body;
	part = 4096;
	assert_int_equal(find(&conf->defaults, &row, &key), KEY_TOO_LONG);
	free(body);
	conf_unref(conf);
}
