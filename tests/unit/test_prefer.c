/*
 * prefer: fields that ask for respond-async, fields that do not, and fields
 * that are no list of preferences; the same of Accept and text/html; and the
 * languages of Accept-Language.
 */
#include "config.h"

#include "cases.h"

#include "prefer.h"

static const char *const asking[] = { "respond-async", "Respond-ASYNC",
	" \trespond-async \t", "respond-async, wait=100",
	"wait=100, respond-async", "wait=100,respond-async",
	", ,respond-async,,",
	/* parameters do not count */
	"respond-async; a=1", "respond-async ;a ; b=\"x,y;z\"",
	"respond-async;", "respond-async;;a", "respond-async; a = 1, wait=1",
	/* an empty value is none */
	"respond-async=\"\"", "respond-async = \"\"",
	/* words may hold anything that the grammar allows */
	"return=minimal, respond-async",
	"a=\"respond-async, \\\" \\\\\", respond-async",
	"a=\"\t\xc3\xa4\xff\", respond-async",
	"!#$%&'*+-.^_`|~09AZ=az, respond-async",
	/* the first of one name counts */
	"respond-async, respond-async=1",
	/* what is no preference says nothing */
	"respond-async,=", "respond-async, a=", "respond-async; =",
	"respond-async; a=", "respond-async, \"a\"", "respond-async, a=\"b",
	"respond-async, a=\"b\\", "respond-async, a=\"b\\\x7f\"",
	"respond-async, a=\"b\n\"", "respond-async, a=\"b\" c",
	"respond-async, (a)", "respond-async, \xc3\xa4" };

static const char *const not_asking[] = {
	/* the first of one name counts */
	"respond-async=1, respond-async", "respond-async=\"no\"",
	/* another preference */
	"", " ", ",", "wait=100", "respond-asyncx", "respond",
	"x; respond-async", "x=respond-async", "x=\"respond-async\"",
	"x=\", respond-async, \"", "handling=strict; a=\",respond-async\"",
	/* what is no preference says nothing */
	"respond-async wait", "respond-async=", "respond-async\x01"
};

typedef bool asks_fn(const struct request *request);

/* Whether it asks by these lines of the field, among others; second: or NULL.
 */
static bool
asks(asks_fn *asks_by, const char *field, const char *first, const char *second)
{
	const struct param params[] = {
		{ "HTTP_X_PREFER", "respond-async=1" },
		{ "HTTP_X_ACCEPT", "application/json" },
		{ field, first },
		{ "http_prefer", "respond-async=1" },
		{ "ACCEPT", "text/html" },
		{ field, second },
	};
	const struct request request = { .params = params,
		.nparams = COUNT(params) - (second == NULL) };

	return asks_by(&request);
}

static void
check(asks_fn *asks_by, const char *field, const char *const *lines, size_t n,
    bool want)
{
	for (size_t i = 0; i < n; i++)
		if (asks(asks_by, field, lines[i], NULL) != want)
			fail_msg("\"%s\"", lines[i]);
}

#define ASYNC prefer_respond_async, "HTTP_PREFER"
#define HTML  prefer_html, "HTTP_ACCEPT"

TEST(every_field)
{
	check(ASYNC, asking, COUNT(asking), true);
	check(ASYNC, not_asking, COUNT(not_asking), false);
}

TEST(a_request_without_the_field_does_not_ask)
{
	static const struct request none;

	assert_false(prefer_respond_async(&none));
	assert_false(prefer_html(&none));
	assert_false(
	    asks(prefer_respond_async, "PREFER", "respond-async", NULL));
	assert_false(
	    asks(prefer_respond_async, "http_prefer", "respond-async", NULL));
}

TEST(lines_of_a_repeated_field_are_one_list)
{
	assert_true(asks(ASYNC, "wait=1", "respond-async"));
	assert_false(asks(ASYNC, "respond-async=1", "respond-async"));
	assert_false(asks(HTML, "text/html", "application/json"));
	assert_true(asks(HTML, "application/json;q=0.5", "text/html"));
	assert_false(asks(HTML, "text/html", "text/html;q=x"));
}

static const char *const html[] = {
	/* browsers: Firefox, Chromium, Safari, lynx, w3m */
	"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
	"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,"
	"image/webp,image/apng,*/*;q=0.8,"
	"application/signed-exchange;v=b3;q=0.7",
	"text/html, text/plain, text/sgml, text/css, */*;q=0.01",
	/* others */
	"text/html", "TEXT/HTML", "text/*", "text/html;q=0.001",
	"text/html;q=1.000, application/json;q=0.999",
	"text/html;charset=utf-8", "text/html; Charset=\"UTF-8\"; q=0.5",
	"text/html;;q=0.5;", " , text/html\t;\tq=0.5 ,",
	"application/json;version=2, text/html;q=0.5", "*/*;q=0.1, text/html",
	"application/*;q=0.1, text/html;q=0.2",
	"text/html, application/json;q=0",
	"text/html, */html, text, /html, text/", "text/html;charset = utf-8",
	/* malformed */
	"text/html, <script>", "text/html, \xff"
};

static const char *const not_html[] = {
	/* browsers: Firefox, Chromium, Safari, lynx, w3m */
	"text/html, text/*;q=0.5, image/*, */*",
	/* the more precise range decides, wherever it stands */
	"text/*, text/html;q=0, application/json;q=0.1",
	"text/html;q=0, text/*", "text/html;q=0.2, text/*;q=0.9, */*;q=0.5",
	"text/html;charset=utf-8;q=0.1, text/html, */*;q=0.5",
	"application/json, */*;q=0, text/html;q=0.9",
	/* programs */
	"*/*", "application/json", "application/problem+json",
	"application/problem+json;q=0.5, text/html;q=0.4",
	"application/json, text/html;q=0.9",
	"application/json;charset=utf-8, text/html;q=0.9",
	"application/json, text/html", "text/html, application/json",
	"text/html, application/*", "text/html;q=0", "text/html;q=0.000",
	"text/plain", "text/htmlx", "xtext/html", "text/html;level=1", "", ",",
	/* Java's HttpURLConnection, which is no browser: "*" is no range */
	"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
	/* malformed */
	"text/html;q=", "text/html;q=2", "text/html;q=1.001",
	"text/html;q=0.1234", "text/html;q=0,5", "text/html;q=-1",
	"text/html;q=.5", "text/html;q=1e0", "text/html;q", "text/html;=1",
	"text/html;a=\"", "text/html;a=\"\\", "text/html;a = ", "text/html x",
	"text/html\x01"
};

TEST(html_only_where_it_is_preferred)
{
	check(HTML, html, COUNT(html), true);
	check(HTML, not_html, COUNT(not_html), false);
}

static const struct {
	const char *field, *tags;
} languages[] = {
	{ "de", "de" },
	{ "de-AT", "de-at" },
	{ "DE-at, en;q=0.8, fr;q=0.9", "de-at fr en" },
	{ "en-US,en;q=0.9,de;q=0.5", "en-us en de" },
	{ "zh-Hant-CN-x-private", "zh-hant-cn-x-private" },
	{ "de;q=0.5, fr;q=0.8, de-AT", "de-at fr de" },
	{ "de-AT;q=0.3, de;q=0.9, en;q=0.8", "de en de-at" },
	{ "de-AT;q=0.3, de;q=0.2, en;q=0.1", "de-at de en" },
	{ "de;q=0, fr", "fr" },
	{ "*, fr;q=0.1", "fr" },
	{ "*", "" },
	{ "", "" },
	{ " , de ;\tq=0.5 ,", "de" },
	{ "de;Q=0.5, fr;q=0.6", "fr de" },
	/* of too many the most wanted are kept */
	{ "a,b,c,d,e,f,g,h,i", "a b c d e f g h" },
	{ "a;q=0.1,b,c,d,e,f,g,h,i;q=0.5,j;q=0.05", "b c d e f g h i" },
	{ "abcdefgh-abcdefgh-abcdefgh-abcdefgh-a, fr", "fr" },
	/* what is no language */
	{ "de/../../etc", "" },
	{ "../../etc/passwd", "" },
	{ "de, ../x", "de" },
	{ "-de", "" },
	{ "de.html", "" },
	{ "*-de", "" },
	{ "de=1", "" },
	{ "de;level=1", "" },
	/* what is malformed asks for nothing */
	{ "de;q=1.1", "" },
	{ "de fr", "" },
	{ "d\xc3\xa9", "" },
};

/* Of these fields the tags, with blanks between them. */
static void
languages_are(const struct param *params, size_t n, const char *expected)
{
	const struct request request = { .params = params, .nparams = n };
	struct prefer_languages got;
	char tags[PREFER_LANGUAGES * (PREFER_TAG_LEN + 1) + 1] = "";

	prefer_languages(&request, &got);
	for (size_t i = 0; i < got.n; i++) {
		strcat(tags, i > 0 ? " " : "");
		strcat(tags, got.item[i].tag);
	}
	assert_string_equal(tags, expected);
}

TEST(languages_in_the_order_of_the_client)
{
	for (size_t i = 0; i < COUNT(languages); i++) {
		const struct param params[] = {
			{ "HTTP_ACCEPT", "es" },
			{ "HTTP_ACCEPT_LANGUAGE", languages[i].field },
		};

		languages_are(params, COUNT(params), languages[i].tags);
	}
}

TEST(lines_of_a_repeated_accept_language_are_one_list)
{
	static const struct param both[] = {
		{ "HTTP_ACCEPT_LANGUAGE", "de;q=0.5" },
		{ "HTTP_ACCEPT_LANGUAGE", "fr" },
	};
	static const struct param bad[] = {
		{ "HTTP_ACCEPT_LANGUAGE", "de" },
		{ "HTTP_ACCEPT_LANGUAGE", "=" },
	};

	languages_are(both, COUNT(both), "fr de");
	languages_are(bad, COUNT(bad), "de");
}
