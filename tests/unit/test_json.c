/*
 * json: the canonical bytes of every kind of value, what is not I-JSON,
 * pointers, limits, and that no input costs more than its length allows.
 */
#include "config.h"

#include "cases.h"

#include "conf_fixture.h"
#include "conf_value.h"
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

/* NULL: not I-JSON. */
struct row {
	const char *name;
	const char *text;
	const char *canonical;
};

static const struct row values[] = {
	{ "null", "null", "null" },
	{ "true with blanks around it", " \t\r\ntrue\n ", "true" },
	{ "false", "false", "false" },
	{ "string", "\"a\"", "\"a\"" },
	{ "empty string", "\"\"", "\"\"" },
	{ "empty object", "{ }", "{}" },
	{ "empty array", "[ ]", "[]" },
	{ "array keeps its order", "[ 3 , 1,2 ]", "[3,1,2]" },
	{ "nested", "{\"a\":[{\"b\":[]}]}", "{\"a\":[{\"b\":[]}]}" },
	{ "members are sorted", "{\"b\":1,\"a\":{\"d\":2,\"c\":3}}",
	    "{\"a\":{\"c\":3,\"d\":2},\"b\":1}" },
	{ "members sorted within arrays",
	    "[{\"b\":1,\"a\":2},{\"d\":3,\"c\":4}]",
	    "[{\"a\":2,\"b\":1},{\"c\":4,\"d\":3}]" },
	{ "shorter name first", "{\"ab\":1,\"a\":2,\"\":3}",
	    "{\"\":3,\"a\":2,\"ab\":1}" },
	{ "upper case before lower case", "{\"a\":1,\"B\":2}",
	    "{\"B\":2,\"a\":1}" },
	{ "names sorted as unescaped", "{\"\\u0062\":1,\"\\u0061\":2}",
	    "{\"a\":2,\"b\":1}" },
	{ "escaped names sorted by what they mean",
	    "{\"!\":1,\"\\\"\":2,\"\\n\":3,\"\\u0001\":4,\"#\":5,\"\\u0000\":"
	    "6}",
	    "{\"\\u0000\":6,\"\\u0001\":4,\"\\n\":3,\"!\":1,\"\\\"\":2,\"#\":"
	    "5}" },
	{ "names in the order of UTF-16 (RFC 8785, section 3.2.3)",
	    "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,"
	    "\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}",
	    "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,"
	    "\"\xe2\x82\xac\":1,\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}" },
	{ "U+D7FF before U+10000",
	    "{\"\xf0\x90\x80\x80\":1,\"\xed\x9f\xbf\":2}",
	    "{\"\xed\x9f\xbf\":2,\"\xf0\x90\x80\x80\":1}" },
	{ "U+E000 after U+10FFFD",
	    "{\"\xee\x80\x80\":1,\"\xf4\x8f\xbf\xbd\":2}",
	    "{\"\xf4\x8f\xbf\xbd\":2,\"\xee\x80\x80\":1}" },
};

static const struct row strings[] = {
	{ "every short escape", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
	    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "short escapes written long",
	    "\"\\u0022\\u005C\\u002f\\u0008\\u000c\\u000a\\u000D\\u0009\"",
	    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "other control characters", "\"\\u0000\\u001F\\u001f\"",
	    "\"\\u0000\\u001f\\u001f\"" },
	{ "DEL stays", "\"\\u007f\x7f\"", "\"\x7f\x7f\"" },
	{ "escapes of two, three and four bytes",
	    "\"\\u00e4\\u20AC\\ud83D\\uDE00\"",
	    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "first and last of each length",
	    "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf0\x90\x80\x80\"",
	    "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf0\x90\x80\x80\"" },
	{ "not normalised", "\"\\u0061\\u0308\"", "\"a\xcc\x88\"" },
	{ "unpaired quote", "\"a", NULL },
	{ "nothing after the backslash", "\"\\", NULL },
	{ "unknown escape", "\"\\x\"", NULL },
	{ "upper-case U", "\"\\U0061\"", NULL },
	{ "escape too short", "\"\\u006\"", NULL },
	{ "escape cut off", "\"\\u00", NULL },
	{ "sign in an escape", "\"\\u+061\"", NULL },
	{ "raw line feed", "\"a\nb\"", NULL },
	{ "raw U+001F", "\"\x1f\"", NULL },
	{ "lone high surrogate", "\"\\ud800\"", NULL },
	{ "high surrogate before text", "\"\\ud800abcdef\"", NULL },
	{ "high surrogate before another escape", "\"\\ud800\\n12345\"", NULL },
	{ "two high surrogates", "\"\\ud800\\ud800\"", NULL },
	{ "lone low surrogate", "\"\\udc00\"", NULL },
	{ "surrogate in UTF-8", "\"\xed\xa0\x80\"", NULL },
	{ "pair of surrogates in UTF-8", "\"\xed\xa0\xbd\xed\xb8\x80\"", NULL },
	{ "overlong, two bytes", "\"\xc0\x80\"", NULL },
	{ "overlong slash", "\"\xc1\xaf\"", NULL },
	{ "overlong, three bytes", "\"\xe0\x9f\xbf\"", NULL },
	{ "overlong, four bytes", "\"\xf0\x8f\xbf\xbf\"", NULL },
	{ "above U+10FFFF", "\"\xf4\x90\x80\x80\"", NULL },
	{ "lead byte F5", "\"\xf5\x80\x80\x80\"", NULL },
	{ "lead byte F8", "\"\xf8\x88\x80\x80\x80\"", NULL },
	{ "lead byte FF", "\"\xff\"", NULL },
	{ "lone continuation byte", "\"\x80\"", NULL },
	{ "sequence cut off by the quote", "\"\xe2\x82\"", NULL },
	{ "sequence cut off by the end", "\"\xe2\x82", NULL },
	{ "noncharacter U+FDD0", "\"\xef\xb7\x90\"", NULL },
	{ "noncharacter U+FDEF escaped", "\"\\ufdef\"", NULL },
	{ "noncharacter U+FFFE", "\"\\uFFFE\"", NULL },
	{ "noncharacter U+FFFF", "\"\xef\xbf\xbf\"", NULL },
	{ "noncharacter U+1FFFE escaped", "\"\\ud83f\\udffe\"", NULL },
	{ "noncharacter U+10FFFF", "\"\xf4\x8f\xbf\xbf\"", NULL },
	{ "next to noncharacters", "\"\\ufdcf\\ufdf0\\ufffd\"",
	    "\"\xef\xb7\x8f\xef\xb7\xb0\xef\xbf\xbd\"" },
	{ "Latin-1", "\"\xe4\"", NULL },
};

static const struct row numbers[] = {
	{ "zero", "0", "0" },
	{ "negative zero", "-0", "0" },
	{ "zero with fraction and exponent", "-0.000e-17", "0" },
	{ "zero with a huge exponent", "0e99999999999999999999999", "0" },
	{ "one", "1", "1" },
	{ "one with a fraction", "1.0", "1" },
	{ "one with an exponent", "10e-1", "1" },
	{ "one with everything", "0.0001000E+00004", "1" },
	{ "negative", "-1.50", "-1.5" },
	{ "zeros inside stay", "1001", "1001" },
	{ "above 2^53", "9007199254740993", "9007199254740993" },
	{ "at 2^53", "9007199254740992", "9007199254740992" },
	{ "ten", "10", "10" },
	{ "ten as an exponent", "1e1", "10" },
	{ "hundred", "1e2", "100" },
	{ "thousand", "1000", "1e3" },
	{ "thousand with a fraction", "1000.00", "1e3" },
	{ "point inside", "123.456", "123.456" },
	{ "point inside as an exponent", "123456e-3", "123.456" },
	{ "a tenth", "1e-1", "0.1" },
	{ "a hundredth", "0.01", "0.01" },
	{ "a hundredth as an exponent", "1e-2", "0.01" },
	{ "a thousandth", "0.001", "1e-3" },
	{ "fifteen thousandths", "15e-3", "0.015" },
	{ "fraction of many digits", "0.0123456789", "0.0123456789" },
	{ "the same as an exponent", "123456789E-10", "0.0123456789" },
	{ "upper-case E, plus, zeros in front", "2E+005", "2e5" },
	{ "exponent minus zero", "7e-0", "7" },
	{ "many zeros", "1000000000000000000000000000000", "1e30" },
	{ "many zeros behind the point", "0.0000000000000000000000000001",
	    "1e-28" },
	{ "more digits than a double has",
	    "0.1000000000000000055511151231257827",
	    "0.1000000000000000055511151231257827" },
	{ "exponent beyond a double", "1e400", "1e400" },
	{ "scientific form where it is shorter: it becomes longer",
	    "1.234567891234567891234567891234567891234567891"
	    "23456789123456789123456789123456789123456789123e-8",
	    "1234567891234567891234567891234567891234567891"
	    "23456789123456789123456789123456789123456789123e-100" },
	{ "the first form where they are as long", "1.234567890123456789e-987",
	    "1234567890123456789e-1005" },
	{ "exponent of 18 digits", "1e999999999999999999",
	    "1e999999999999999999" },
	{ "exponent of 19 digits", "1e1000000000000000000",
	    "1e1000000000000000000" },
	{ "carry from 18 to 19 digits", "10e999999999999999999",
	    "1e1000000000000000000" },
	{ "borrow from 19 to 18 digits", "0.1e1000000000000000000",
	    "1e999999999999999999" },
	{ "carry from 18 to 19 digits, negative", "0.1e-999999999999999999",
	    "1e-1000000000000000000" },
	{ "borrow from 19 to 18 digits, negative", "100e-1000000000000000001",
	    "1e-999999999999999999" },
	{ "exponent beyond 64 bits", "1e99999999999999999999999999999",
	    "1e99999999999999999999999999999" },
	{ "carry through all its digits", "1000e99999999999999999999999999999",
	    "1e100000000000000000000000000002" },
	{ "borrow through all its digits",
	    "0.0001e100000000000000000000000000002",
	    "1e99999999999999999999999999998" },
	{ "beyond 64 bits, negative, with digits",
	    "-12.50e-00100000000000000000000000000000",
	    "-125e-100000000000000000000000000001" },
	{ "no digits", "-", NULL },
	{ "plus in front", "+1", NULL },
	{ "zero in front", "01", NULL },
	{ "zero in front of a fraction", "00.5", NULL },
	{ "negative with zero in front", "-01", NULL },
	{ "no digit before the point", ".5", NULL },
	{ "no digit behind the point", "1.", NULL },
	{ "no digit behind the point, exponent", "1.e5", NULL },
	{ "no digit in the exponent", "1e", NULL },
	{ "sign alone in the exponent", "1e+", NULL },
	{ "two signs", "1e+-5", NULL },
	{ "fraction in the exponent", "1e5.5", NULL },
	{ "two points", "1.2.3", NULL },
	{ "hexadecimal", "0x10", NULL },
	{ "NaN", "NaN", NULL },
	{ "Infinity", "-Infinity", NULL },
	{ "blank behind the sign", "- 1", NULL },
};

static const struct row malformed[] = {
	{ "blanks only", " \n", NULL },
	{ "byte order mark", "\xef\xbb\xbf{}", NULL },
	{ "two values", "1 2", NULL },
	{ "text behind the value", "{}x", NULL },
	{ "form feed is no blank", "\f1", NULL },
	{ "literal cut off", "tru", NULL },
	{ "literal in upper case", "True", NULL },
	{ "literal run on", "nullnull", NULL },
	{ "unknown word", "undefined", NULL },
	{ "single quotes", "'a'", NULL },
	{ "object not closed", "{\"a\":1", NULL },
	{ "object closed as an array", "{\"a\":1]", NULL },
	{ "object with a comma at the end", "{\"a\":1,}", NULL },
	{ "object with a comma in front", "{,\"a\":1}", NULL },
	{ "object with two commas", "{\"a\":1,,\"b\":2}", NULL },
	{ "member without colon", "{\"a\" 1}", NULL },
	{ "member without value", "{\"a\":}", NULL },
	{ "member without name", "{1:2}", NULL },
	{ "member's name unquoted", "{a:1}", NULL },
	{ "member's name cut off", "{\"a", NULL },
	{ "array not closed", "[1", NULL },
	{ "array with a comma at the end", "[1,]", NULL },
	{ "array with a comma in front", "[,1]", NULL },
	{ "array without comma", "[1 2]", NULL },
	{ "closed, never opened", "]", NULL },
	{ "comment", "/**/1", NULL },
	{ "duplicate names", "{\"a\":1,\"a\":1}", NULL },
	{ "duplicate names apart", "{\"a\":1,\"b\":2,\"a\":3}", NULL },
	{ "duplicate names, one escaped", "{\"a\":1,\"\\u0061\":2}", NULL },
	{ "duplicate names, astral",
	    "{\"\\ud83d\\ude00\":1,"
	    "\"\xf0\x9f\x98\x80\":2}",
	    NULL },
	{ "duplicate empty names", "{\"\":1,\"\":2}", NULL },
	{ "duplicate names deep inside", "[[{\"b\":{\"a\":1,\"a\":2}}]]",
	    NULL },
	{ "the same name at two levels", "{\"a\":{\"a\":1}}",
	    "{\"a\":{\"a\":1}}" },
	{ "the same name in two objects", "[{\"a\":1},{\"a\":1}]",
	    "[{\"a\":1},{\"a\":1}]" },
	{ "names that differ in case", "{\"a\":1,\"A\":1}",
	    "{\"A\":1,\"a\":1}" },
	{ "names that differ in form only", "{\"\xc3\xa4\":1,\"a\xcc\x88\":1}",
	    "{\"a\xcc\x88\":1,\"\xc3\xa4\":1}" },
};

/* From memory of its exact size, so that a sanitizer sees each byte read
 * beyond it; and again, as the canonical form is its own. */
static void
check(const char *name, const char *text, size_t len, const char *canonical)
{
	char *exact = malloc(len > 0 ? len : 1);
	struct buf out, again;
	enum json_verdict v;

	assert_non_null(exact);
	memcpy(exact, text, len);
	buf_init(&out, len + len / 64 + 1);
	buf_init(&again, len + len / 64);
	assert_ok(buf_addc(&out, '#'));
	v = canonicalise(exact, len, &nothing, &out);
	if (canonical == NULL) {
		if (v != JSON_NOT_IJSON)
			fail_msg("%s: verdict %d: %s", name, (int)v, out.data);
		assert_string_equal(out.data, "#");
	} else {
		if (v != JSON_OK)
			fail_msg("%s: verdict %d", name, (int)v);
		if (strcmp(out.data + 1, canonical) != 0)
			fail_msg("%s: %s", name, out.data + 1);
		assert_int_equal(
		    canonicalise(out.data + 1, out.len - 1, &nothing, &again),
		    JSON_OK);
		if (strcmp(again.data, canonical) != 0)
			fail_msg("%s: again: %s", name, again.data);
	}
	buf_free(&out);
	buf_free(&again);
	free(exact);
}

static void
check_rows(const struct row *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		check(rows[i].name, rows[i].text, strlen(rows[i].text),
		    rows[i].canonical);
}

TEST(values_of_every_kind)
{
	check_rows(values, COUNT(values));
}

TEST(strings_of_every_kind)
{
	check_rows(strings, COUNT(strings));
}

TEST(numbers_are_exact_decimals)
{
	check_rows(numbers, COUNT(numbers));
}

/* In an array and an object, too: other characters follow the number. */
TEST(numbers_inside_others)
{
	char text[256], canonical[256];
	size_t i;

	for (i = 0; i < COUNT(numbers); i++) {
		snprintf(text, sizeof(text), "[%s,{\"a\":%s}]", numbers[i].text,
		    numbers[i].text);
		if (numbers[i].canonical != NULL)
			snprintf(canonical, sizeof(canonical),
			    "[%s,{\"a\":%s}]", numbers[i].canonical,
			    numbers[i].canonical);
		check(numbers[i].name, text, strlen(text),
		    numbers[i].canonical != NULL ? canonical : NULL);
	}
}

TEST(malformed_texts_and_duplicate_names)
{
	check_rows(malformed, COUNT(malformed));
	check("empty", "", 0, NULL);
	check("NUL", "\0", 1, NULL);
	check("NUL behind the value", "1\0", 2, NULL);
	check("NUL in a string", "\"\0\"", 3, NULL);
	check("NUL behind a backslash", "\"\\\0\"", 4, NULL);
	check("NUL in an escape", "\"\\u\0\0\0\0\"", 8, NULL);
}

/* Every text, cut off everywhere, is another text or none; never a crash. */
TEST(texts_cut_off_anywhere)
{
	struct buf out;
	char *exact;
	size_t i, len;

	for (i = 0; i < COUNT(values); i++) {
		for (len = 1; len < strlen(values[i].text); len++) {
			exact = malloc(len);
			assert_non_null(exact);
			memcpy(exact, values[i].text, len);
			buf_init(&out, len);
			if (canonicalise(exact, len, &nothing, &out) != JSON_OK)
				assert_int_equal(out.len, 0);
			buf_free(&out);
			free(exact);
		}
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
	const char *name;
	const char *ignore[8];
	const char *text, *canonical;
} ignores[] = {
	{ "member", { "/b" }, "{\"c\":1,\"b\":2,\"a\":3}",
	    "{\"a\":3,\"c\":1}" },
	{ "member of a sorted object", { "/b" }, "{\"a\":1,\"b\":2,\"c\":3}",
	    "{\"a\":1,\"c\":3}" },
	{ "first member", { "/a" }, "{\"a\":1,\"b\":2}", "{\"b\":2}" },
	{ "last member", { "/b" }, "{\"a\":1,\"b\":2}", "{\"a\":1}" },
	{ "only member", { "/a" }, "{\"a\":1}", "{}" },
	{ "all members", { "/a", "/b" }, "{\"b\":1,\"a\":2}", "{}" },
	{ "member that is not there", { "/x" }, "{\"a\":1}", "{\"a\":1}" },
	{ "member and its absence are the same", { "/ts" },
	    "{\"a\":1,\"ts\":{\"x\":[1,2,{}]}}", "{\"a\":1}" },
	{ "member inside", { "/meta/ts" },
	    "{\"meta\":{\"ts\":1,\"id\":2},\"ts\":3}",
	    "{\"meta\":{\"id\":2},\"ts\":3}" },
	{ "token must be whole", { "/me", "/metadata" }, "{\"meta\":1}",
	    "{\"meta\":1}" },
	{ "several at several levels", { "/c", "/a/b", "/a/d/e", "/a/b" },
	    "{\"a\":{\"b\":1,\"d\":{\"e\":2,\"f\":3},\"c\":4},\"c\":5}",
	    "{\"a\":{\"c\":4,\"d\":{\"f\":3}}}" },
	{ "one and another below it", { "/a/b", "/a" },
	    "{\"a\":{\"b\":1},\"c\":2}", "{\"c\":2}" },
	{ "names that begin alike", { "/ab", "/a/b", "/a!" },
	    "{\"a\":{\"b\":1,\"c\":2},\"ab\":3,\"a!\":4,\"abc\":5}",
	    "{\"a\":{\"c\":2},\"abc\":5}" },
	{ "escaped slash and tilde", { "/a~1b", "/c~0d", "/e~01" },
	    "{\"a/b\":1,\"c~d\":2,\"e~1\":3,\"e/\":4}", "{\"e/\":4}" },
	{ "name escaped in the text", { "/ts" }, "{\"\\u0074s\":1,\"a\":2}",
	    "{\"a\":2}" },
	{ "name with quote and backslash", { "/a\"b", "/a\\b" },
	    "{\"a\\\"b\":1,\"a\\\\b\":2,\"c\":3}", "{\"c\":3}" },
	{ "name beyond ASCII", { "/\xc3\xa4" }, "{\"\\u00e4\":1,\"a\":2}",
	    "{\"a\":2}" },
	{ "empty name", { "/" }, "{\"\":1,\"a\":2}", "{\"a\":2}" },
	{ "empty name inside", { "/a//b" }, "{\"a\":{\"\":{\"b\":1,\"c\":2}}}",
	    "{\"a\":{\"\":{\"c\":2}}}" },
	{ "name with NUL is another one", { "/a" }, "{\"a\\u0000\":1,\"a\":2}",
	    "{\"a\\u0000\":1}" },
	{ "NUL is no end of a token", { "/a/b" }, "{\"a\\u0000b\":1}",
	    "{\"a\\u0000b\":1}" },
	{ "first element", { "/0" }, "[1,2,3]", "[2,3]" },
	{ "element inside", { "/a/1" }, "{\"a\":[1,2,3]}", "{\"a\":[1,3]}" },
	{ "last element", { "/2" }, "[1,2,3]", "[1,2]" },
	{ "all elements", { "/0", "/1" }, "[[1],{}]", "[]" },
	{ "element beyond the end", { "/3" }, "[1,2,3]", "[1,2,3]" },
	{ "element of two digits", { "/10" }, "[0,1,2,3,4,5,6,7,8,9,10,11]",
	    "[0,1,2,3,4,5,6,7,8,9,11]" },
	{ "member of an element", { "/1/a" }, "[{\"a\":1},{\"a\":2,\"b\":3}]",
	    "[{\"a\":1},{\"b\":3}]" },
	{ "index with zero in front", { "/01" }, "[1,2]", "[1,2]" },
	{ "dash is no element", { "/-" }, "[1,2]", "[1,2]" },
	{ "dash is a name", { "/-" }, "{\"-\":1}", "{}" },
	{ "number is a name in an object", { "/0" }, "{\"0\":1,\"1\":2}",
	    "{\"1\":2}" },
	{ "pointer into a string", { "/a/0" }, "{\"a\":\"xyz\"}",
	    "{\"a\":\"xyz\"}" },
	{ "top is a string", { "/a" }, "\"a\"", "\"a\"" },
	{ "nested below what is left out", { "/a", "/a/b/c" },
	    "{\"a\":{\"b\":{\"c\":1}}}", "{}" },
	{ "duplicate of what is left out", { "/a" }, "{\"a\":1,\"a\":2}",
	    NULL },
	{ "duplicates inside what is left out", { "/a" },
	    "{\"a\":{\"b\":1,\"b\":2}}", NULL },
	{ "malformed inside what is left out", { "/a" }, "{\"a\":tru}", NULL },
	{ "malformed element left out", { "/0" }, "[01]", NULL },
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
			fail_msg("%s: verdict %d", ignores[i].name, (int)v);
		if (v == JSON_OK && strcmp(out.data, ignores[i].canonical) != 0)
			fail_msg("%s: %s", ignores[i].name, out.data);
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

static const struct {
	const char *name, *pointer;
	bool valid;
} pointers[] = {
	{ "one token", "/a", true },
	{ "empty token", "/", true },
	{ "several", "/a//b/0", true },
	{ "escapes", "/~0~1", true },
	{ "any other character", "/a b\"\\\xc3\xa4%", true },
	{ "empty", "", false },
	{ "no slash in front", "a", false },
	{ "as a URI fragment", "#/a", false },
	{ "tilde at the end", "/a~", false },
	{ "unknown escape", "/~2", false },
	{ "tilde before a slash", "/~/a", false },
};

TEST(pointers_that_are_valid)
{
	size_t i;

	for (i = 0; i < COUNT(pointers); i++)
		if (conf_value_is_pointer(pointers[i].pointer) !=
		    pointers[i].valid)
			fail_msg("%s", pointers[i].name);
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
