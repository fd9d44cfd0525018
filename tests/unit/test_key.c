/*
 * key: every form of a field value, with key_syntax any and string; lengths.
 */
#include "config.h"

#include "cases.h"

#include "key.h"

/* Verdicts with `any` and with `string`; key is what KEY_OK leaves. */
struct row {
	const char *name;
	const char *value;
	enum key_verdict any, string;
	const char *key;
};

#define BOTH(v) v, v

static const struct row rows[] = {
	{ "String", "\"a-1\"", BOTH(KEY_OK), "a-1" },
	{ "String of a UUID", "\"8e03978e-40d5-43e8-bc93-6894a57f9324\"",
	    BOTH(KEY_OK), "8e03978e-40d5-43e8-bc93-6894a57f9324" },
	{ "String with blanks around it", " \t\"a\" \t", BOTH(KEY_OK), "a" },
	{ "String of one blank", "\" \"", BOTH(KEY_OK), " " },
	{ "blanks inside count", "\" a b \"", BOTH(KEY_OK), " a b " },
	{ "escaped quote and backslash", "\"a\\\"b\\\\c\"", BOTH(KEY_OK),
	    "a\"b\\c" },
	{ "first and last character of a String", "\" ~\"", BOTH(KEY_OK),
	    " ~" },
	{ "comma and semicolon in a String", "\"a,b;c\"", BOTH(KEY_OK),
	    "a,b;c" },
	{ "what looks like a list in a String", "\"a, \\\"b\"", BOTH(KEY_OK),
	    "a, \"b" },
	{ "token", "a-1", KEY_OK, KEY_NOT_STRING, "a-1" },
	{ "token with blanks around it", "  a\t", KEY_OK, KEY_NOT_STRING, "a" },
	{ "first and last character of a token", "!~", KEY_OK, KEY_NOT_STRING,
	    "!~" },
	{ "every sign in a token", "!#$%&'()*+-./:<=>?@[]^_`{|}~", KEY_OK,
	    KEY_NOT_STRING, "!#$%&'()*+-./:<=>?@[]^_`{|}~" },
	{ "Byte Sequence is a token", ":YWJj:", KEY_OK, KEY_NOT_STRING,
	    ":YWJj:" },
	{ "number is a token", "-1.5", KEY_OK, KEY_NOT_STRING, "-1.5" },
	{ "String and token of the same text agree", "\"abc\"", BOTH(KEY_OK),
	    "abc" },

	{ "nothing", "", BOTH(KEY_EMPTY), NULL },
	{ "blanks only", " \t ", BOTH(KEY_EMPTY), NULL },
	{ "empty String", "\"\"", BOTH(KEY_EMPTY), NULL },
	{ "empty String with parameter", "\"\";a", BOTH(KEY_EMPTY), NULL },

	{ "two Strings", "\"a\", \"b\"", BOTH(KEY_LIST), NULL },
	{ "the same String twice", "\"a\",\"a\"", BOTH(KEY_LIST), NULL },
	{ "blank before the comma", "\"a\" , \"b\"", BOTH(KEY_LIST), NULL },
	{ "tab before the comma", "\"a\"\t,\"b\"", BOTH(KEY_LIST), NULL },
	{ "two tokens", "a, b", BOTH(KEY_LIST), NULL },
	{ "two tokens without blank", "a,b", BOTH(KEY_LIST), NULL },
	{ "two tokens, blank before the comma", "a ,b", BOTH(KEY_LIST), NULL },
	{ "String and token", "\"a\", b", BOTH(KEY_LIST), NULL },
	{ "token and String", "a, \"b\"", BOTH(KEY_LIST), NULL },
	{ "parameter, then a second one", "\"a\";x=1, \"b\"", BOTH(KEY_LIST),
	    NULL },
	{ "comma at the end", "\"a\",", BOTH(KEY_LIST), NULL },
	{ "comma at the end of a token", "a,", BOTH(KEY_LIST), NULL },
	{ "comma in front", ", a", BOTH(KEY_LIST), NULL },
	{ "comma alone", ",", BOTH(KEY_LIST), NULL },

	{ "quote not closed", "\"a", BOTH(KEY_MALFORMED), NULL },
	{ "quote alone", "\"", BOTH(KEY_MALFORMED), NULL },
	{ "closing quote escaped", "\"a\\\"", BOTH(KEY_MALFORMED), NULL },
	{ "backslash at the end", "\"a\\", BOTH(KEY_MALFORMED), NULL },
	{ "unknown escape", "\"a\\n\"", BOTH(KEY_MALFORMED), NULL },
	{ "control character in a String", "\"a\x1f\"", BOTH(KEY_MALFORMED),
	    NULL },
	{ "tab in a String", "\"a\tb\"", BOTH(KEY_MALFORMED), NULL },
	{ "DEL in a String", "\"a\x7f\"", BOTH(KEY_MALFORMED), NULL },
	{ "UTF-8 in a String", "\"\xc3\xa4\"", BOTH(KEY_MALFORMED), NULL },
	{ "text behind a String", "\"a\"b", BOTH(KEY_MALFORMED), NULL },
	{ "String behind a String", "\"a\"\"b\"", BOTH(KEY_MALFORMED), NULL },
	{ "String behind a blank", "\"a\" \"b\"", BOTH(KEY_MALFORMED), NULL },
	{ "quote in a token", "a\"b", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "backslash in a token", "a\\b", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "parameter behind a token", "a;b=1", KEY_MALFORMED, KEY_NOT_STRING,
	    NULL },
	{ "semicolon alone", ";", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "blank in a token", "a b", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "control character in a token", "a\x01", KEY_MALFORMED,
	    KEY_NOT_STRING, NULL },
	{ "DEL in a token", "a\x7f", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "UTF-8 in a token", "\xc3\xa4", KEY_MALFORMED, KEY_NOT_STRING, NULL },
	{ "typographic quotes",
	    "\xe2\x80\x9c"
	    "a\xe2\x80\x9d",
	    KEY_MALFORMED, KEY_NOT_STRING, NULL },
};

/* What may follow "\"k\""; true: ignored, false: malformed. */
static const struct {
	const char *name, *text;
	bool valid;
} parameters[] = {
	{ "without value", ";a", true },
	{ "blanks behind the semicolon", ";  a", true },
	{ "two", ";a;b=1", true },
	{ "the same name twice", ";a=1;a=2", true },
	{ "every character of a name", ";*a-z_0.9*", true },
	{ "blanks at the end", ";a=1  ", true },
	{ "Integer", ";a=42", true },
	{ "negative Integer", ";a=-42", true },
	{ "Integer with zeros in front", ";a=0042", true },
	{ "Integer of 15 digits", ";a=123456789012345", true },
	{ "Decimal", ";a=1.5", true },
	{ "Decimal of 12 and 3 digits", ";a=-123456789012.123", true },
	{ "String", ";a=\"x;y, z\\\"\\\\\"", true },
	{ "empty String", ";a=\"\"", true },
	{ "Token", ";a=foo/1.2:x", true },
	{ "Token that begins with a star", ";a=*", true },
	{ "Byte Sequence", ";a=:YWJj:", true },
	{ "empty Byte Sequence", ";a=::", true },
	{ "Byte Sequence with padding", ";a=:YQ==:", true },
	{ "Byte Sequence without its padding", ";a=:YWI:", true },
	{ "true", ";a=?1", true },
	{ "false", ";a=?0", true },
	{ "Date", ";a=@1659578233", true },
	{ "Date before 1970", ";a=@-1", true },
	{ "Display String", ";a=%\"f%c3%bc%22 \"", true },
	{ "Display String up to U+10FFFF", ";a=%\"%f4%8f%bf%bf\"", true },
	{ "Display String with a backslash", ";a=%\"\\\"", true },

	{ "semicolon alone", ";", false },
	{ "blank before the semicolon", " ;a", false },
	{ "tab behind the semicolon", ";\ta", false },
	{ "two semicolons", ";;a", false },
	{ "upper-case name", ";A", false },
	{ "name that begins with a digit", ";1", false },
	{ "name that ends in upper case", ";aB", false },
	{ "no name", ";=1", false },
	{ "no value", ";a=", false },
	{ "blank before the equals sign", ";a =1", false },
	{ "blank behind the equals sign", ";a= 1", false },
	{ "String not closed", ";a=\"x", false },
	{ "String with an unknown escape", ";a=\"\\x\"", false },
	{ "Byte Sequence with a blank", ";a=:YW Jj:", false },
	{ "Display String not closed", ";a=%\"x", false },
	{ "Display String without quote", ";a=%x", false },
	{ "Display String, escape cut off", ";a=%\"%c", false },
	{ "Display String, raw UTF-8", ";a=%\"\xc3\xbc\"", false },
	{ "Inner List", ";a=(1)", false },
	{ "two Strings", ";a=\"x\"\"y\"", false },
	{ "String behind a Token", ";a=x\"y\"", false },
	{ "UTF-8", ";a=\xc3\xa4", false },
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
check(const char *name, const char *value, const struct conf_route *route,
    enum key_verdict expected, const char *text)
{
	struct key key;
	enum key_verdict v;

	memset(&key, 'x', sizeof(key));
	v = key_parse(value, route, &key);
	if (v != expected)
		fail_msg("%s: %s", name, key_verdict_text(v));
	if (expected != KEY_OK)
		text = "";
	if (key.len != strlen(text) || strcmp(key.text, text) != 0)
		fail_msg("%s: key '%s'", name, key.text);
}

TEST(every_form_of_a_value)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		check(rows[i].name, rows[i].value, &route_any, rows[i].any,
		    rows[i].key);
		check(rows[i].name, rows[i].value, &route_string,
		    rows[i].string, rows[i].key);
	}
}

TEST(parameters_are_ignored_if_well_formed)
{
	char value[128];
	size_t i;

	for (i = 0; i < COUNT(parameters); i++) {
		snprintf(value, sizeof(value), "\"k\"%s", parameters[i].text);
		check(parameters[i].name, value, &route_any,
		    parameters[i].valid ? KEY_OK : KEY_MALFORMED, "k");
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
	const char *text;
	int i, j;

	for (i = KEY_OK; i <= KEY_MALFORMED; i++) {
		text = key_verdict_text((enum key_verdict)i);
		assert_true(strlen(text) > 10);
		assert_int_equal(text[strlen(text) - 1], '.');
		for (j = KEY_OK; j < i; j++)
			assert_string_not_equal(
			    text, key_verdict_text((enum key_verdict)j));
	}
}
