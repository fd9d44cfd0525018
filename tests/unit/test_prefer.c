/*
 * prefer: fields that ask for respond-async, fields that do not, and fields
 * that are no list of preferences; the same of Accept and text/html; and the
 * languages of Accept-Language.
 */
#include "config.h"

#include "cases.h"

#include "prefer.h"

static const struct {
	const char *field;
	bool asks;
} rows[] = {
	{ "respond-async", true },
	{ "Respond-ASYNC", true },
	{ " \trespond-async \t", true },
	{ "respond-async, wait=100", true },
	{ "wait=100, respond-async", true },
	{ "wait=100,respond-async", true },
	{ ", ,respond-async,,", true },
	/* parameters do not count */
	{ "respond-async; a=1", true },
	{ "respond-async ;a ; b=\"x,y;z\"", true },
	{ "respond-async;", true },
	{ "respond-async;;a", true },
	{ "respond-async; a = 1, wait=1", true },
	/* an empty value is none */
	{ "respond-async=\"\"", true },
	{ "respond-async = \"\"", true },
	/* words may hold anything that the grammar allows */
	{ "return=minimal, respond-async", true },
	{ "a=\"respond-async, \\\" \\\\\", respond-async", true },
	{ "a=\"\t\xc3\xa4\xff\", respond-async", true },
	{ "!#$%&'*+-.^_`|~09AZ=az, respond-async", true },
	/* the first of one name counts */
	{ "respond-async, respond-async=1", true },
	{ "respond-async=1, respond-async", false },
	{ "respond-async=\"no\"", false },
	/* another preference */
	{ "", false },
	{ " ", false },
	{ ",", false },
	{ "wait=100", false },
	{ "respond-asyncx", false },
	{ "respond", false },
	{ "x; respond-async", false },
	{ "x=respond-async", false },
	{ "x=\"respond-async\"", false },
	{ "x=\", respond-async, \"", false },
	{ "handling=strict; a=\",respond-async\"", false },
	/* what is no preference says nothing */
	{ "respond-async wait", false },
	{ "respond-async,=", true },
	{ "respond-async, a=", true },
	{ "respond-async=", false },
	{ "respond-async; =", true },
	{ "respond-async; a=", true },
	{ "respond-async, \"a\"", true },
	{ "respond-async, a=\"b", true },
	{ "respond-async, a=\"b\\", true },
	{ "respond-async, a=\"b\\\x7f\"", true },
	{ "respond-async, a=\"b\n\"", true },
	{ "respond-async, a=\"b\" c", true },
	{ "respond-async, (a)", true },
	{ "respond-async, \xc3\xa4", true },
	{ "respond-async\x01", false },
};

static struct request
request_of(const struct param *params, size_t n)
{
	return (struct request){ .params = params, .nparams = n };
}

static bool
asks(const struct param *params, size_t n)
{
	const struct request request = request_of(params, n);

	return prefer_respond_async(&request);
}

TEST(every_field)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct param params[] = {
			{ "HTTP_X_PREFER", "respond-async=1" },
			{ "HTTP_PREFER", rows[i].field },
			{ "http_prefer", "respond-async=1" },
		};

		if (asks(params, COUNT(params)) != rows[i].asks)
			fail_msg("\"%s\"", rows[i].field);
	}
}

TEST(request_without_the_field_does_not_ask)
{
	static const struct param params[] = { { "PREFER", "respond-async" },
		{ "http_prefer", "respond-async" } };

	assert_false(asks(NULL, 0));
	assert_false(asks(params, COUNT(params)));
}

TEST(lines_of_a_repeated_field_are_one_list)
{
	static const struct param later[] = { { "HTTP_PREFER", "wait=1" },
		{ "HTTP_X", "y" }, { "HTTP_PREFER", "respond-async" } };
	static const struct param first[] = { { "HTTP_PREFER",
						  "respond-async=1" },
		{ "HTTP_PREFER", "respond-async" } };

	assert_true(asks(later, COUNT(later)));
	assert_false(asks(first, COUNT(first)));
}

static const struct {
	const char *field;
	bool html;
} accepts[] = {
	/* browsers: Firefox, Chromium, Safari, lynx, w3m */
	{ "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
	    true },
	{ "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,"
	  "image/webp,image/apng,*/*;q=0.8,"
	  "application/signed-exchange;v=b3;q=0.7",
	    true },
	{ "text/html, text/plain, text/sgml, text/css, */*;q=0.01", true },
	{ "text/html, text/*;q=0.5, image/*, */*", false },
	{ "text/html", true },
	{ "TEXT/HTML", true },
	{ "text/*", true },
	{ "text/html;q=0.001", true },
	{ "text/html;q=1.000, application/json;q=0.999", true },
	{ "text/html;charset=utf-8", true },
	{ "text/html; Charset=\"UTF-8\"; q=0.5", true },
	{ "text/html;;q=0.5;", true },
	{ " , text/html\t;\tq=0.5 ,", true },
	{ "application/json;version=2, text/html;q=0.5", true },
	{ "*/*;q=0.1, text/html", true },
	{ "application/*;q=0.1, text/html;q=0.2", true },
	{ "text/html, application/json;q=0", true },
	{ "text/html, */html, text, /html, text/", true },
	{ "text/html;charset = utf-8", true },
	/* the more precise range decides, wherever it stands */
	{ "text/*, text/html;q=0, application/json;q=0.1", false },
	{ "text/html;q=0, text/*", false },
	{ "text/html;q=0.2, text/*;q=0.9, */*;q=0.5", false },
	{ "text/html;charset=utf-8;q=0.1, text/html, */*;q=0.5", false },
	{ "application/json, */*;q=0, text/html;q=0.9", false },
	/* programs */
	{ "*/*", false },
	{ "application/json", false },
	{ "application/problem+json", false },
	{ "application/problem+json;q=0.5, text/html;q=0.4", false },
	{ "application/json, text/html;q=0.9", false },
	{ "application/json;charset=utf-8, text/html;q=0.9", false },
	{ "application/json, text/html", false },
	{ "text/html, application/json", false },
	{ "text/html, application/*", false },
	{ "text/html;q=0", false },
	{ "text/html;q=0.000", false },
	{ "text/plain", false },
	{ "text/htmlx", false },
	{ "xtext/html", false },
	{ "text/html;level=1", false },
	{ "", false },
	{ ",", false },
	/* Java's HttpURLConnection, which is no browser: "*" is no range */
	{ "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", false },
	/* malformed */
	{ "text/html;q=", false },
	{ "text/html;q=2", false },
	{ "text/html;q=1.001", false },
	{ "text/html;q=0.1234", false },
	{ "text/html;q=0,5", false },
	{ "text/html;q=-1", false },
	{ "text/html;q=.5", false },
	{ "text/html;q=1e0", false },
	{ "text/html;q", false },
	{ "text/html;=1", false },
	{ "text/html;a=\"", false },
	{ "text/html;a=\"\\", false },
	{ "text/html;a = ", false },
	{ "text/html x", false },
	{ "text/html, <script>", true },
	{ "text/html\x01", false },
	{ "text/html, \xff", true },
};

static bool
wants_html(const struct param *params, size_t n)
{
	const struct request request = request_of(params, n);

	return prefer_html(&request);
}

TEST(html_only_where_it_is_preferred)
{
	for (size_t i = 0; i < COUNT(accepts); i++) {
		const struct param params[] = {
			{ "HTTP_X_ACCEPT", "application/json" },
			{ "HTTP_ACCEPT", accepts[i].field },
			{ "ACCEPT", "text/html" },
		};

		if (wants_html(params, COUNT(params)) != accepts[i].html)
			fail_msg("\"%s\"", accepts[i].field);
	}
	assert_false(wants_html(NULL, 0));
}

TEST(lines_of_a_repeated_accept_are_one_list)
{
	static const struct param json[] = { { "HTTP_ACCEPT", "text/html" },
		{ "HTTP_ACCEPT", "application/json" } };
	static const struct param html[] = { { "HTTP_ACCEPT",
						 "application/json;q=0.5" },
		{ "HTTP_ACCEPT", "text/html" } };
	static const struct param bad[] = { { "HTTP_ACCEPT", "text/html" },
		{ "HTTP_ACCEPT", "text/html;q=x" } };

	assert_false(wants_html(json, COUNT(json)));
	assert_true(wants_html(html, COUNT(html)));
	assert_false(wants_html(bad, COUNT(bad)));
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
	const struct request request = request_of(params, n);
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
