/*
 * key: every form of a field value, with key_syntax any and string; lengths.
 */
#include "config.h"

#include "cases.h"

#include "key.h"

struct row {
	const char *value, *key;
};

/* Also with `string`. */
static const struct row strings[] = {
	{ "\"a-1\"", "a-1" },
	{ "\"8e03978e-40d5-43e8-bc93-6894a57f9324\"",
	    "8e03978e-40d5-43e8-bc93-6894a57f9324" },
	{ " \t\"a\" \t", "a" },
	{ "\" \"", " " },
	{ "\" a b \"", " a b " },
	{ "\"a\\\"b\\\\c\"", "a\"b\\c" },
	{ "\" ~\"", " ~" },
	{ "\"a,b;c\"", "a,b;c" },
	{ "\"a, \\\"b\"", "a, \"b" },
	{ "\"abc\"", "abc" },
};

/* With `string` they are none. */
static const struct row tokens[] = {
	{ "a-1", "a-1" },
	{ "  a\t", "a" },
	{ "!~", "!~" },
	{ "!#$%&'()*+-./:<=>?@[]^_`{|}~", "!#$%&'()*+-./:<=>?@[]^_`{|}~" },
	{ ":YWJj:", ":YWJj:" },
	{ "-1.5", "-1.5" },
};

static const char *const empty[] = { "", " \t ", "\"\"", "\"\";a" };

static const char *const lists[] = { "\"a\", \"b\"", "\"a\",\"a\"",
	"\"a\" , \"b\"", "\"a\"\t,\"b\"", "a, b", "a,b", "a ,b", "\"a\", b",
	"a, \"b\"", "\"a\";x=1, \"b\"", "\"a\",", "a,", ", a", "," };

static const char *const malformed_strings[] = { "\"a", "\"", "\"a\\\"",
	"\"a\\", "\"a\\n\"", "\"a\x1f\"", "\"a\tb\"", "\"a\x7f\"",
	"\"\xc3\xa4\"", "\"a\"b", "\"a\"\"b\"", "\"a\" \"b\"" };

static const char *const malformed_tokens[] = { "a\"b", "a\\b", "a;b=1", ";",
	"a b", "a\x01", "a\x7f", "\xc3\xa4", "\342\200\234a\342\200\235" };

/* What may follow "\"k\"", and is ignored. */
static const char *const parameters[] = {
	/* names */
	";a", ";  a", ";a;b=1", ";a=1;a=2", ";*a-z_0.9*", ";a=1  ",
	/* Integers and Decimals */
	";a=42", ";a=-42", ";a=0042", ";a=123456789012345", ";a=1.5",
	";a=-123456789012.123",
	/* Strings and Tokens */
	";a=\"x;y, z\\\"\\\\\"", ";a=\"\"", ";a=foo/1.2:x", ";a=*",
	/* Byte Sequences */
	";a=:YWJj:", ";a=::", ";a=:YQ==:", ";a=:YWI:",
	/* Booleans and Dates */
	";a=?1", ";a=?0", ";a=@1659578233", ";a=@-1",
	/* Display Strings */
	";a=%\"f%c3%bc%22 \"", ";a=%\"%f4%8f%bf%bf\"", ";a=%\"\\\""
};

static const char *const bad_parameters[] = {
	/* names */
	";", " ;a", ";\ta", ";;a", ";A", ";1", ";aB", ";=1", ";a=", ";a =1",
	";a= 1",
	/* values */
	";a=\"x", ";a=\"\\x\"", ";a=:YW Jj:", ";a=%\"x", ";a=%x", ";a=%\"%c",
	";a=%\"\xc3\xbc\"", ";a=(1)", ";a=\"x\"\"y\"", ";a=x\"y\"",
	";a=\xc3\xa4"
};

static const struct conf_route route_any = {
	.key_syntax = CONF_SYNTAX_ANY,
	.key_min_length = 1,
	.key_max_length = 255,
};
static const struct conf_route route_string = {
	.key_syntax = CONF_SYNTAX_STRING,
	.key_min_length = 1,
	.key_max_length = 255,
};

/* As a route has it. */
static enum key_verdict
key_parse(const char *value, const struct conf_route *route, struct key *out)
{
	enum key_verdict verdict = key_read(value, route->key_syntax, out);

	return verdict == KEY_OK ? key_check_length(route, out->len) : verdict;
}

static void
check(const char *value, const struct conf_route *route,
    enum key_verdict expected, const char *text)
{
	struct key key;
	enum key_verdict v;

	memset(&key, 'x', sizeof(key));
	v = key_parse(value, route, &key);
	if (v != expected)
		fail_msg("%s: %s", value, key_verdict_text(v));
	if (key.len != strlen(text) || strcmp(key.text, text) != 0)
		fail_msg("%s: key '%s'", value, key.text);
}

static void
check_keys(const struct row *rows, size_t n, bool is_string)
{
	for (size_t i = 0; i < n; i++) {
		check(rows[i].value, &route_any, KEY_OK, rows[i].key);
		if (is_string)
			check(
			    rows[i].value, &route_string, KEY_OK, rows[i].key);
		else
			check(rows[i].value, &route_string, KEY_NOT_STRING, "");
	}
}

static void
check_none(const char *const *values, size_t n, enum key_verdict any,
    enum key_verdict string)
{
	for (size_t i = 0; i < n; i++) {
		check(values[i], &route_any, any, "");
		check(values[i], &route_string, string, "");
	}
}

#define NONE(values, any, string) check_none(values, COUNT(values), any, string)

TEST(every_form_of_a_value)
{
	check_keys(strings, COUNT(strings), true);
	check_keys(tokens, COUNT(tokens), false);
	NONE(empty, KEY_EMPTY, KEY_EMPTY);
	NONE(lists, KEY_LIST, KEY_LIST);
	NONE(malformed_strings, KEY_MALFORMED, KEY_MALFORMED);
	NONE(malformed_tokens, KEY_MALFORMED, KEY_NOT_STRING);
}

TEST(parameters_are_ignored_if_well_formed)
{
	char value[128];

	for (size_t i = 0; i < COUNT(parameters); i++) {
		snprintf(value, sizeof(value), "\"k\"%s", parameters[i]);
		check(value, &route_any, KEY_OK, "k");
	}
	for (size_t i = 0; i < COUNT(bad_parameters); i++) {
		snprintf(value, sizeof(value), "\"k\"%s", bad_parameters[i]);
		check(value, &route_any, KEY_MALFORMED, "");
	}
}

static const struct {
	const char *name, *value;
	unsigned min, max;
	enum key_verdict verdict;
} lengths[] = {
	{ "shortest", "abc", 3, 5, KEY_OK },
	{ "longest", "abcde", 3, 5, KEY_OK },
	{ "one too short", "ab", 3, 5, KEY_TOO_SHORT },
	{ "one too long", "abcdef", 3, 5, KEY_TOO_LONG },
	{ "quotes do not count", "\"abcde\"", 3, 5, KEY_OK },
	{ "escapes do not count", "\"\\\"\\\"\\\\\\\"\\\"\"", 3, 5, KEY_OK },
	{ "escaped characters count", "\"\\\"\\\"\"", 3, 5, KEY_TOO_SHORT },
	{ "parameters do not count", "\"abcde\";x=12345", 3, 5, KEY_OK },
	{ "blanks around do not count", "   ab   ", 3, 5, KEY_TOO_SHORT },
	{ "blanks inside count", "\"   \"", 3, 5, KEY_OK },
	{ "empty before too short", "\"\"", 3, 5, KEY_EMPTY },
	{ "malformed before too long", "abcdefg\\", 3, 5, KEY_MALFORMED },
};

TEST(lengths_are_those_of_the_key_itself)
{
	struct conf_route route = route_any;
	struct key key;
	size_t i;

	for (i = 0; i < COUNT(lengths); i++) {
		route.key_min_length = lengths[i].min;
		route.key_max_length = lengths[i].max;
		if (key_parse(lengths[i].value, &route, &key) !=
		    lengths[i].verdict)
			fail_msg("%s", lengths[i].name);
	}
}

TEST(longest_key_there_can_be)
{
	struct conf_route route = route_any;
	size_t len = 100000;
	char *value = malloc(len + 1);
	struct key key;

	assert_non_null(value);
	memset(value, 'k', len);
	value[len] = '\0';
	route.key_max_length = LIMIT_KEY;
	assert_int_equal(key_parse(value, &route, &key), KEY_TOO_LONG);
	route.key_max_length = 1000000; /* more than there is room for */
	assert_int_equal(key_parse(value, &route, &key), KEY_TOO_LONG);
	assert_int_equal(key.len, 0);
	value[LIMIT_KEY + 1] = '\0';
	assert_int_equal(key_parse(value, &route, &key), KEY_TOO_LONG);
	value[LIMIT_KEY] = '\0';
	assert_int_equal(key_parse(value, &route, &key), KEY_OK);
	assert_int_equal(key.len, LIMIT_KEY);
	assert_string_equal(key.text, value);
	free(value);
}

TEST(every_verdict_is_a_sentence_of_its_own)
{
	ALL_DIFFER(key_verdict_text, enum key_verdict, KEY_OK, KEY_MALFORMED);
	for (int v = KEY_OK; v <= KEY_MALFORMED; v++) {
		const char *text = key_verdict_text((enum key_verdict)v);

		assert_true(strlen(text) > 10);
		assert_int_equal(text[strlen(text) - 1], '.');
	}
}
