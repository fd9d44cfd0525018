/*
 * json: the canonical bytes of every kind of value, what is not I-JSON,
 * pointers, limits, and that no input costs more than its length allows.
 */
#include "config.h"

#include "cases.h"

#include "conf_fixture.h"
#include "json.h"
#include "limit.h"

static const struct conf_list nothing;

static enum json_verdict
canonicalise(const void *text, size_t len, const struct conf_list *ignore,
    struct buf *out)
{
	struct json *json;
	enum json_verdict v = json_read(&json, text, len);

	if (v == JSON_OK && json_canonical(json, ignore, out) != RC_OK)
		v = JSON_NO_MEMORY;
	json_free(json);
	return v;
}

struct row {
	const char *text, *canonical;
};

static const struct row values[] = {
	{ "null", "null" },
	{ " \t\r\ntrue\n ", "true" },
	{ "false", "false" },
	{ "\"a\"", "\"a\"" },
	{ "\"\"", "\"\"" },
	{ "{ }", "{}" },
	{ "[ ]", "[]" },
	{ "[ 3 , 1,2 ]", "[3,1,2]" },
	{ "{\"a\":[{\"b\":[]}]}", "{\"a\":[{\"b\":[]}]}" },
	/* members are sorted */
	{ "{\"b\":1,\"a\":{\"d\":2,\"c\":3}}",
	    "{\"a\":{\"c\":3,\"d\":2},\"b\":1}" },
	{ "[{\"b\":1,\"a\":2},{\"d\":3,\"c\":4}]",
	    "[{\"a\":2,\"b\":1},{\"c\":4,\"d\":3}]" },
	{ "{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}" },
	{ "{\"a\":1,\"B\":2}", "{\"B\":2,\"a\":1}" },
	{ "{\"\\u0062\":1,\"\\u0061\":2}", "{\"a\":2,\"b\":1}" },
	{ "{\"!\":1,\"\\\"\":2,\"\\n\":3,\"\\u0001\":4,\"#\":5,\"\\u0000\":"
	  "6}",
	    "{\"\\u0000\":6,\"\\u0001\":4,\"\\n\":3,\"!\":1,\"\\\"\":2,\"#\":"
	    "5}" },
	/* names in the order of UTF-16 (RFC 8785, section 3.2.3) */
	{ "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,"
	  "\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}",
	    "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,"
	    "\"\xe2\x82\xac\":1,\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}" },
	{ "{\"\xf0\x90\x80\x80\":1,\"\xed\x9f\xbf\":2}",
	    "{\"\xed\x9f\xbf\":2,\"\xf0\x90\x80\x80\":1}" },
	{ "{\"\xee\x80\x80\":1,\"\xf4\x8f\xbf\xbd\":2}",
	    "{\"\xf4\x8f\xbf\xbd\":2,\"\xee\x80\x80\":1}" },
};

static const struct row strings[] = {
	/* escapes */
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "\"\\u0022\\u005C\\u002f\\u0008\\u000c\\u000a\\u000D\\u0009\"",
	    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "\"\\u0000\\u001F\\u001f\"", "\"\\u0000\\u001f\\u001f\"" },
	{ "\"\\u007f\x7f\"", "\"\x7f\x7f\"" },
	{ "\"\\u00e4\\u20AC\\ud83D\\uDE00\"",
	    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	/* first and last of each length, and not normalised */
	{ "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf0\x90\x80\x80\"",
	    "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf0\x90\x80\x80\"" },
	{ "\"\\u0061\\u0308\"", "\"a\xcc\x88\"" },
	/* next to noncharacters */
	{ "\"\\ufdcf\\ufdf0\\ufffd\"",
	    "\"\xef\xb7\x8f\xef\xb7\xb0\xef\xbf\xbd\"" },
};

static const char *const bad_strings[] = {
	/* not closed, and escapes */
	"\"a", "\"\\", "\"\\x\"", "\"\\U0061\"", "\"\\u006\"", "\"\\u00",
	"\"\\u+061\"",
	/* control characters */
	"\"a\nb\"", "\"\x1f\"",
	/* surrogates */
	"\"\\ud800\"", "\"\\ud800abcdef\"", "\"\\ud800\\n12345\"",
	"\"\\ud800\\ud800\"", "\"\\udc00\"", "\"\xed\xa0\x80\"",
	"\"\xed\xa0\xbd\xed\xb8\x80\"",
	/* overlong */
	"\"\xc0\x80\"", "\"\xc1\xaf\"", "\"\xe0\x9f\xbf\"",
	"\"\xf0\x8f\xbf\xbf\"",
	/* lead bytes that are none */
	"\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"",
	"\"\xf8\x88\x80\x80\x80\"", "\"\xff\"",
	/* sequences that are not whole */
	"\"\x80\"", "\"\xe2\x82\"", "\"\xe2\x82",
	/* noncharacters */
	"\"\xef\xb7\x90\"", "\"\\ufdef\"", "\"\\uFFFE\"", "\"\xef\xbf\xbf\"",
	"\"\\ud83f\\udffe\"", "\"\xf4\x8f\xbf\xbf\"",
	/* Latin-1 */
	"\"\xe4\""
};

static const struct row numbers[] = {
	/* zero */
	{ "0", "0" },
	{ "-0", "0" },
	{ "-0.000e-17", "0" },
	{ "0e99999999999999999999999", "0" },
	/* one */
	{ "1", "1" },
	{ "1.0", "1" },
	{ "10e-1", "1" },
	{ "0.0001000E+00004", "1" },
	{ "-1.50", "-1.5" },
	{ "1001", "1001" },
	/* more digits than a double has */
	{ "9007199254740993", "9007199254740993" },
	{ "9007199254740992", "9007199254740992" },
	/* where the exponent begins */
	{ "10", "10" },
	{ "1e1", "10" },
	{ "1e2", "100" },
	{ "1000", "1e3" },
	{ "1000.00", "1e3" },
	{ "123.456", "123.456" },
	{ "123456e-3", "123.456" },
	{ "1e-1", "0.1" },
	{ "0.01", "0.01" },
	{ "1e-2", "0.01" },
	{ "0.001", "1e-3" },
	{ "15e-3", "0.015" },
	{ "0.0123456789", "0.0123456789" },
	{ "123456789E-10", "0.0123456789" },
	{ "2E+005", "2e5" },
	{ "7e-0", "7" },
	{ "1000000000000000000000000000000", "1e30" },
	{ "0.0000000000000000000000000001", "1e-28" },
	{ "0.1000000000000000055511151231257827",
	    "0.1000000000000000055511151231257827" },
	{ "1e400", "1e400" },
	/* the shorter of the two forms, with its digits as they were */
	{ "1.234567891234567891234567891234567891234567891"
	  "23456789123456789123456789123456789123456789123e-8",
	    "1234567891234567891234567891234567891234567891"
	    "23456789123456789123456789123456789123456789123e-100" },
	{ "1.234567890123456789e-987", "1234567890123456789e-1005" },
	/* exponents of 18 and 19 digits, with carry and borrow */
	{ "1e999999999999999999", "1e999999999999999999" },
	{ "1e1000000000000000000", "1e1000000000000000000" },
	{ "10e999999999999999999", "1e1000000000000000000" },
	{ "0.1e1000000000000000000", "1e999999999999999999" },
	{ "0.1e-999999999999999999", "1e-1000000000000000000" },
	{ "100e-1000000000000000001", "1e-999999999999999999" },
	/* exponents beyond 64 bits */
	{ "1e99999999999999999999999999999",
	    "1e99999999999999999999999999999" },
	{ "1000e99999999999999999999999999999",
	    "1e100000000000000000000000000002" },
	{ "0.0001e100000000000000000000000000002",
	    "1e99999999999999999999999999998" },
	{ "-12.50e-00100000000000000000000000000000",
	    "-125e-100000000000000000000000000001" },
};

static const char *const bad_numbers[] = { "-", "+1", "01", "00.5", "-01", ".5",
	"1.", "1.e5", "1e", "1e+", "1e+-5", "1e5.5", "1.2.3", "0x10", "NaN",
	"-Infinity", "- 1" };

static const struct row names[] = {
	/* the same name elsewhere */
	{ "{\"a\":{\"a\":1}}", "{\"a\":{\"a\":1}}" },
	{ "[{\"a\":1},{\"a\":1}]", "[{\"a\":1},{\"a\":1}]" },
	{ "{\"a\":1,\"A\":1}", "{\"A\":1,\"a\":1}" },
	{ "{\"\xc3\xa4\":1,\"a\xcc\x88\":1}",
	    "{\"a\xcc\x88\":1,\"\xc3\xa4\":1}" },
};

static const char *const malformed[] = { " \n", "\xef\xbb\xbf{}", "1 2", "{}x",
	"\f1", "tru", "True", "nullnull", "undefined", "'a'",
	/* objects and arrays */
	"{\"a\":1", "{\"a\":1]", "{\"a\":1,}", "{,\"a\":1}",
	"{\"a\":1,,\"b\":2}", "{\"a\" 1}", "{\"a\":}", "{1:2}", "{a:1}", "{\"a",
	"[1", "[1,]", "[,1]", "[1 2]", "]", "/**/1",
	/* names that come twice */
	"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}",
	"{\"a\":1,\"\\u0061\":2}",
	"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "{\"\":1,\"\":2}",
	"[[{\"b\":{\"a\":1,\"a\":2}}]]" };

static enum json_verdict
canonicalise_exact(const char *text, size_t len, const struct conf_list *ignore,
    struct buf *to)
{
	char *exact = exact_copy(text, len);
	enum json_verdict v;

	v = canonicalise(exact, len, ignore, to);
	free(exact);
	return v;
}

/* The canonical form is its own. */
static void
check(const char *text, const char *canonical)
{
	const size_t len = strlen(text);
	struct buf out, again;

	buf_init(&out, len + len / 64);
	buf_init(&again, len + len / 64);
	if (canonicalise_exact(text, len, &nothing, &out) != JSON_OK ||
	    strcmp(out.data, canonical) != 0 ||
	    canonicalise(out.data, out.len, &nothing, &again) != JSON_OK ||
	    strcmp(again.data, canonical) != 0)
		fail_msg("%s: %s, again %s", text, out.data, again.data);
	buf_free(&out);
	buf_free(&again);
}

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(rows[i].text, rows[i].canonical);
}

static void
not_json(const char *text, size_t len)
{
	struct buf out;

	buf_init(&out, len + 1);
	assert_ok(buf_addc(&out, '#'));
	if (canonicalise_exact(text, len, &nothing, &out) != JSON_NOT_IJSON)
		fail_msg("%s: %s", text, out.data);
	assert_string_equal(out.data, "#");
	buf_free(&out);
}

static void
none_is_json(const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		not_json(texts[i], strlen(texts[i]));
}

TEST(values_of_every_kind)
{
	check_rows(values, COUNT(values));
}

TEST(strings_of_every_kind)
{
	check_rows(strings, COUNT(strings));
	none_is_json(bad_strings, COUNT(bad_strings));
}

/* In an array and an object, too: other characters follow the number. */
#define INSIDE "[%s,{\"a\":%s}]"

TEST(numbers_are_exact_decimals)
{
	char text[256], canonical[256];

	check_rows(numbers, COUNT(numbers));
	for (size_t i = 0; i < COUNT(numbers); i++) {
		snprintf(text, sizeof(text), INSIDE, numbers[i].text,
		    numbers[i].text);
		snprintf(canonical, sizeof(canonical), INSIDE,
		    numbers[i].canonical, numbers[i].canonical);
		check(text, canonical);
	}
	none_is_json(bad_numbers, COUNT(bad_numbers));
	for (size_t i = 0; i < COUNT(bad_numbers); i++) {
		snprintf(
		    text, sizeof(text), INSIDE, bad_numbers[i], bad_numbers[i]);
		not_json(text, strlen(text));
	}
}

TEST(malformed_texts_and_duplicate_names)
{
	check_rows(names, COUNT(names));
	none_is_json(malformed, COUNT(malformed));
	not_json("", 0);
	not_json("\0", 1);
	not_json("1\0", 2);
	not_json("\"\0\"", 3);
	not_json("\"\\\0\"", 4);
	not_json("\"\\u\0\0\0\0\"", 8);
}

/* Every text, cut off everywhere, is another text or none; never a crash. */
TEST(texts_cut_off_anywhere)
{
	struct buf out;

	for (size_t i = 0; i < COUNT(values); i++)
		for (size_t len = 1; len < strlen(values[i].text); len++) {
			buf_init(&out, len);
			if (canonicalise_exact(
				values[i].text, len, &nothing, &out) != JSON_OK)
				assert_int_equal(out.len, 0);
			buf_free(&out);
		}
}

/* A text that a case makes, and what is made of it. */
static struct buf text, out;

static int
begin(UNUSED void **state)
{
	buf_init(&text, 32 << 20);
	buf_init(&out, 32 << 20);
	return 0;
}

static int
end(UNUSED void **state)
{
	buf_free(&text);
	buf_free(&out);
	return 0;
}

AROUND_EACH(begin, end)

static void
put(const char *part, int times)
{
	while (times-- > 0)
		assert_ok(buf_adds(&text, part));
}

static void
gives(enum json_verdict expected)
{
	buf_clear(&out);
	assert_int_equal(
	    canonicalise(text.data, text.len, &nothing, &out), expected);
	if (expected != JSON_OK)
		assert_int_equal(out.len, 0);
}

static void
nest(const char *open, const char *close, int depth, enum json_verdict expected)
{
	buf_clear(&text);
	put(open, depth);
	put("1", 1);
	put(close, depth);
	gives(expected);
	if (expected == JSON_OK)
		assert_string_equal(out.data, text.data);
}

TEST(nesting_up_to_the_limit)
{
	nest("[", "]", LIMIT_JSON_DEPTH, JSON_OK);
	nest("[", "]", LIMIT_JSON_DEPTH + 1, JSON_NOT_IJSON);
	nest("[", "]", 100000, JSON_NOT_IJSON);
	nest("{\"a\":", "}", LIMIT_JSON_DEPTH, JSON_OK);
	nest("{\"a\":", "}", LIMIT_JSON_DEPTH + 1, JSON_NOT_IJSON);
	nest("[{\"a\":", "}]", LIMIT_JSON_DEPTH / 2, JSON_OK);
	nest("[{\"a\":", "}]", LIMIT_JSON_DEPTH / 2 + 1, JSON_NOT_IJSON);
}

TEST(nesting_that_is_cut_off)
{
	for (int i = 0; i < LIMIT_JSON_DEPTH; i++) {
		put("{\"\":", 1);
		gives(JSON_NOT_IJSON);
	}
}

/* --- pointers --------------------------------------------------------- */

static const struct {
	const char *ignore[8];
	const char *text, *canonical;
} ignores[] = {
	/* members */
	{ { "/b" }, "{\"c\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"c\":1}" },
	{ { "/b" }, "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"c\":3}" },
	{ { "/a" }, "{\"a\":1,\"b\":2}", "{\"b\":2}" },
	{ { "/b" }, "{\"a\":1,\"b\":2}", "{\"a\":1}" },
	{ { "/a" }, "{\"a\":1}", "{}" },
	{ { "/a", "/b" }, "{\"b\":1,\"a\":2}", "{}" },
	{ { "/x" }, "{\"a\":1}", "{\"a\":1}" },
	{ { "/ts" }, "{\"a\":1,\"ts\":{\"x\":[1,2,{}]}}", "{\"a\":1}" },
	/* inside */
	{ { "/meta/ts" }, "{\"meta\":{\"ts\":1,\"id\":2},\"ts\":3}",
	    "{\"meta\":{\"id\":2},\"ts\":3}" },
	/* names are whole */
	{ { "/me", "/metadata" }, "{\"meta\":1}", "{\"meta\":1}" },
	{ { "/c", "/a/b", "/a/d/e", "/a/b" },
	    "{\"a\":{\"b\":1,\"d\":{\"e\":2,\"f\":3},\"c\":4},\"c\":5}",
	    "{\"a\":{\"c\":4,\"d\":{\"f\":3}}}" },
	{ { "/a/b", "/a" }, "{\"a\":{\"b\":1},\"c\":2}", "{\"c\":2}" },
	{ { "/ab", "/a/b", "/a!" },
	    "{\"a\":{\"b\":1,\"c\":2},\"ab\":3,\"a!\":4,\"abc\":5}",
	    "{\"a\":{\"c\":2},\"abc\":5}" },
	/* escapes */
	{ { "/a~1b", "/c~0d", "/e~01" },
	    "{\"a/b\":1,\"c~d\":2,\"e~1\":3,\"e/\":4}", "{\"e/\":4}" },
	{ { "/ts" }, "{\"\\u0074s\":1,\"a\":2}", "{\"a\":2}" },
	{ { "/a\"b", "/a\\b" }, "{\"a\\\"b\":1,\"a\\\\b\":2,\"c\":3}",
	    "{\"c\":3}" },
	{ { "/\xc3\xa4" }, "{\"\\u00e4\":1,\"a\":2}", "{\"a\":2}" },
	/* empty names */
	{ { "/" }, "{\"\":1,\"a\":2}", "{\"a\":2}" },
	{ { "/a//b" }, "{\"a\":{\"\":{\"b\":1,\"c\":2}}}",
	    "{\"a\":{\"\":{\"c\":2}}}" },
	/* NUL */
	{ { "/a" }, "{\"a\\u0000\":1,\"a\":2}", "{\"a\\u0000\":1}" },
	{ { "/a/b" }, "{\"a\\u0000b\":1}", "{\"a\\u0000b\":1}" },
	/* elements */
	{ { "/0" }, "[1,2,3]", "[2,3]" },
	{ { "/a/1" }, "{\"a\":[1,2,3]}", "{\"a\":[1,3]}" },
	{ { "/2" }, "[1,2,3]", "[1,2]" },
	{ { "/0", "/1" }, "[[1],{}]", "[]" },
	{ { "/3" }, "[1,2,3]", "[1,2,3]" },
	{ { "/10" }, "[0,1,2,3,4,5,6,7,8,9,10,11]",
	    "[0,1,2,3,4,5,6,7,8,9,11]" },
	{ { "/1/a" }, "[{\"a\":1},{\"a\":2,\"b\":3}]",
	    "[{\"a\":1},{\"b\":3}]" },
	/* what is no element */
	{ { "/01" }, "[1,2]", "[1,2]" },
	{ { "/-" }, "[1,2]", "[1,2]" },
	{ { "/-" }, "{\"-\":1}", "{}" },
	{ { "/0" }, "{\"0\":1,\"1\":2}", "{\"1\":2}" },
	{ { "/a/0" }, "{\"a\":\"xyz\"}", "{\"a\":\"xyz\"}" },
	{ { "/a" }, "\"a\"", "\"a\"" },
	/* one and another below it */
	{ { "/a", "/a/b/c" }, "{\"a\":{\"b\":{\"c\":1}}}", "{}" },
	/* what is left out must be I-JSON */
	{ { "/a" }, "{\"a\":1,\"a\":2}", NULL },
	{ { "/a" }, "{\"a\":{\"b\":1,\"b\":2}}", NULL },
	{ { "/a" }, "{\"a\":tru}", NULL },
	{ { "/0" }, "[01]", NULL },
};

TEST(members_that_are_left_out)
{
	const char *items[COUNT(ignores[0].ignore) + 1] = { NULL };
	struct conf_list list;
	enum json_verdict v;
	size_t i;

	for (i = 0; i < COUNT(ignores); i++) {
		memcpy(items, ignores[i].ignore, sizeof(ignores[i].ignore));
		list = list_of(items);
		buf_free(&out);
		buf_init(&out, strlen(ignores[i].text));
		v = canonicalise(
		    ignores[i].text, strlen(ignores[i].text), &list, &out);
		if ((v == JSON_OK) != (ignores[i].canonical != NULL))
			fail_msg("%s: verdict %d", ignores[i].text, (int)v);
		if (v == JSON_OK && strcmp(out.data, ignores[i].canonical) != 0)
			fail_msg("%s: %s", ignores[i].text, out.data);
		list_free(&list);
	}
}

TEST(many_pointers_with_one_beginning)
{
	struct conf_list list = { calloc(LIMIT_CONF_LIST, sizeof(char *)),
		LIMIT_CONF_LIST };
	size_t i;

	put("{\"a\":{", 1);
	for (i = 0; i < list.n; i++) {
		assert_true(
		    asprintf(&list.item[i], "/a/%zu", i * 37 % list.n) > 0);
		assert_ok(buf_addf(&text, "\"%zu\":1,\"x%zu\":2,", i, i));
	}
	put("\"x\":3}}", 1);
	assert_int_equal(
	    canonicalise(text.data, text.len, &list, &out), JSON_OK);
	assert_memory_equal(out.data, "{\"a\":{\"x\":3,\"x0\":2,", 19);
	assert_null(strstr(out.data, "\":1"));
	for (i = 0; i < list.n; i++) {
		buf_clear(&text);
		assert_ok(buf_addf(&text, "\"x%zu\":2", i));
		assert_non_null(strstr(out.data, text.data));
	}
	list_free(&list);
}

/* --- limits ----------------------------------------------------------- */

TEST(output_without_room_fails)
{
	size_t max, need;

	put("{\"b\":[1.25,\"x\\u0000\",true,{}],\"a\":[],"
	    "\"c\":1e9999999999999999999}",
	    1);
	gives(JSON_OK);
	need = out.len;
	for (max = 1; max <= need; max++) {
		buf_free(&out);
		buf_init(&out, max);
		assert_ok(buf_addc(&out, '#'));
		assert_int_equal(
		    canonicalise(text.data, text.len, &nothing, &out),
		    JSON_NO_MEMORY);
		assert_string_equal(out.data, "#");
	}
}

/* Characters in the order of RFC 8785, section 3.2.3, as a text has them. */
static const char *const characters[] = { "\\u0001", "\\n", "\\u001f", "!",
	"\\\"", "A", "\\\\", "a", "\xc3\xa9", "\xed\x9f\xbf",
	"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbd", "\xee\x80\x80",
	"\xef\xbf\xbd" };
#define NCHARACTERS COUNT(characters)

/* Appends an object with all names of up to three of these characters, in
 * order, or all mixed up. */
static void
put_all_names(bool mixed)
{
	const size_t radix = NCHARACTERS + 1, n = radix * radix * radix;
	bool first = true;
	size_t i, k, d;

	put("{", 1);
	for (i = 0; i < n; i++) {
		k = mixed ? i * 1009 % n : i;
		/* Behind the end of a name there is nothing. */
		if ((k % radix != 0 && k / radix % radix == 0) ||
		    (k / radix % radix != 0 && k / radix / radix == 0))
			continue;
		put(first ? "\"" : ",\"", 1);
		first = false;
		for (d = radix * radix; d > 0; d /= radix)
			if (k / d % radix != 0)
				put(characters[k / d % radix - 1], 1);
		put("\":0", 1);
	}
	put("}", 1);
}

TEST(many_names_are_sorted_as_few_are)
{
	char *sorted;

	put_all_names(false);
	sorted = strdup(text.data);
	buf_clear(&text);
	put_all_names(true);
	gives(JSON_OK);
	assert_string_equal(out.data, sorted);
	/* A duplicate of the first one, as far apart as can be. */
	buf_clear(&text);
	put(sorted, 1);
	buf_truncate(&text, text.len - 1);
	put(",\"\":0}", 1);
	gives(JSON_NOT_IJSON);
	free(sorted);
}

TEST(text_that_is_too_long_is_not_compared)
{
	put("\"", 1);
	put("x", LIMIT_JSON - 2);
	put("\"", 1);
	gives(JSON_OK);
	assert_int_equal(out.len, LIMIT_JSON);
	assert_true(json_cost(LIMIT_JSON) <= LIMIT_JSON_MEMORY);
	put(" ", 1);
	gives(JSON_NOT_IJSON);
	assert_int_equal(json_cost(text.len), 0);
}

TEST(members_out_of_order_at_every_level)
{
	put("{\"b\":", LIMIT_JSON_DEPTH);
	put("0", 1);
	put(",\"a\":1}", LIMIT_JSON_DEPTH);
	gives(JSON_OK);
	assert_int_equal(out.len, text.len);
	for (int i = 0; i < LIMIT_JSON_DEPTH; i++)
		assert_memory_equal(out.data + i * 11, "{\"a\":1,\"b\":", 11);
}

TEST(what_is_written_holds_any_text)
{
	struct json_write o = { &out, RC_OK };

	buf_clear(&out);
	json_write_raw(&o, "{");
	json_write_text(&o, "a", "\"\\\n\x7f \xc3\xa9 \xc2\x85 \xff\xc3");
	json_write_text(&o, "none", NULL);
	json_write_time(&o, "never", 0);
	json_write_time(&o, "then", 1);
	json_write_number(&o, "n", INT64_MAX);
	json_write_bool(&o, "no", false);
	json_write_raw(&o, "}");
	assert_int_equal(o.rc, RC_OK);
	assert_string_equal(out.data,
	    "{\"a\":\"\\\"\\\\\\u000a\\u007f \xc3\xa9 \\u0085 \\ufffd\\ufffd\","
	    "\"none\":null,\"never\":null,"
	    "\"then\":\"1970-01-01T00:00:00.001Z\","
	    "\"n\":9223372036854775807,\"no\":false}");
}
