/*
 * html: no text becomes markup, and no URI but http's a link.
 */
#include "config.h"

#include "cases.h"

#include "html.h"
#include "out.h"

static const struct {
	const char *text, *html;
} texts[] = {
	{ "", "" },
	{ "plain", "plain" },
	{ "<script>alert('1')</script>",
	    "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;" },
	{ "\"><img src=x>", "&quot;&gt;&lt;img src=x&gt;" },
	{ "a&amp;b", "a&amp;amp;b" },
	{ "two\nlines\tand", "two\\x0alines\\x09and" },
	{ "\001\033[2J\177\r", "\\x01\\x1b[2J\\x7f\\x0d" },
	{ "Z\303\274rich \342\202\254 \360\237\230\200",
	    "Z\303\274rich \342\202\254 \360\237\230\200" },
	{ "\377\300\274script", "\\xff\\xc0\\xbcscript" },
	{ "\302\233", "\\xc2\\x9b" },
	{ "cut \342\202", "cut \\xe2\\x82" },
};

TEST(text_is_never_markup)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		out_new(256);
		assert_ok(html_value(&out, texts[i].text));
		assert_string_equal(out.data, texts[i].html);
	}
}

TEST(lines_may_be_any_bytes)
{
	static const char bytes[] = "a\0<\n\303";

	out_new(64);
	assert_ok(html_lines(&out, bytes, 5));
	assert_string_equal(out.data, "a\\x00&lt;\n\\xc3");
	buf_clear(&out);
	assert_ok(html_lines(&out, NULL, 0));
	assert_int_equal(out.len, 0);
}

TEST(query_needs_no_reference)
{
	out_new(64);
	assert_ok(html_query(&out, "a/b-&=\"'<\n\377"));
	assert_string_equal(out.data, "a/b-%26%3D%22%27%3C%0A%FF");
}

TEST(template_escapes_by_the_kind)
{
	static const struct html_part parts[] = {
		{ "<b>", HTML_TEXT, 1 },
		{ "</b><a href=\"?", HTML_QUERY, 1 },
		{ "\">", HTML_NUMBER, 0 },
		{ "</a><pre>", HTML_LINES, 2 },
		{ "</pre>", HTML_NOTHING, 0 },
	};
	const union html_value values[] = { { .number = -7 }, { .text = "<\n" },
		{ .text = "x\0y", .len = 3 } };
	struct html html = { &out, RC_OK };

	out_new(128);
	html_render(&html, parts, values);
	assert_ok(html.rc);
	assert_string_equal(out.data,
	    "<b>&lt;\\x0a</b><a href=\"?%3C%0A\">-7</a><pre>x\\x00y</pre>");
	out_new(20);
	html_render(&html, parts, values);
	assert_int_equal(html.rc, RC_LIMIT);
	html_render(&html, parts, values);
	assert_true(out.len <= 20);
	/* A failure of the caller stays too. */
	out_new(128);
	html.rc = RC_NOMEM;
	html_render(&html, parts, values);
	assert_int_equal(html.rc, RC_NOMEM);
}

TEST(only_the_web_is_a_link)
{
	static const struct {
		const char *uri, *html;
	} links[] = {
		{ "https://example.org/a?b=1&c='2'",
		    "<a href=\"https://example.org/a?b=1&amp;c=&#39;2&#39;\">"
		    "A&amp;B</a>" },
		{ "HTTP://example.org/",
		    "<a href=\"HTTP://example.org/\">A&amp;B</a>" },
		{ "javascript:alert(1)", "A&amp;B: javascript:alert(1)" },
		{ "data:text/html,<b>", "A&amp;B: data:text/html,&lt;b&gt;" },
		{ "urn:x", "A&amp;B: urn:x" },
	};

	for (size_t i = 0; i < COUNT(links); i++) {
		out_new(256);
		assert_ok(html_link(&out, links[i].uri, "A&B"));
		assert_string_equal(out.data, links[i].html);
	}
}

TEST(a_full_buffer_is_reported)
{
	static const char *const long_texts[] = { "123456789", "1234567<",
		"1234567\303\274", "1234567\001" };

	for (size_t i = 0; i < COUNT(long_texts); i++) {
		out_new(8);
		assert_int_equal(html_value(&out, long_texts[i]), RC_LIMIT);
		assert_true(out.len <= 8);
	}
	for (size_t max = 0; max < 30; max++) {
		out_new(max);
		assert_int_equal(
		    html_link(&out, "https://example.org/", "A"), RC_LIMIT);
	}
}
