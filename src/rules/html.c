/*
 * Text and links of a page.
 */
#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "utf8.h"

#include "html.h"

/* keep: controls that stay as they are. */
static enum rc
add_bytes(struct buf *out, const char *s, size_t n, const char *keep)
{
	static const char special[] = "&<>\"'";
	static const char *const references[] = { "&amp;", "&lt;", "&gt;",
		"&quot;", "&#39;" };
	const char *at;
	uint32_t code;
	size_t one;

	for (; n > 0; s += one, n -= one) {
		one = 1;
		if (*s != '\0' && (at = strchr(special, *s)) != NULL)
			buf_adds(out, references[at - special]);
		else if ((*s >= ' ' && *s < 0x7f) ||
		    (*s != '\0' && strchr(keep, *s) != NULL))
			buf_addc(out, *s);
		else if ((one = utf8_read(s, n, &code)) > 1 && code >= 0xa0)
			buf_add(out, s, one);
		else {
			buf_addf(out, "\\x%02x", (unsigned char)*s);
			one = 1;
		}
	}
	return out->rc;
}

enum rc
html_value(struct buf *out, const char *s)
{
	return add_bytes(out, s, strlen(s), "");
}

enum rc
html_lines(struct buf *out, const void *bytes, size_t n)
{
	return add_bytes(out, bytes, n, "\n\t");
}

enum rc
html_query(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if ((*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z') ||
		    (*s >= 'a' && *s <= 'z') || strchr("-._~/", *s) != NULL)
			buf_addc(out, *s);
		else
			buf_addf(out, "%%%02X", (unsigned char)*s);
	}
	return out->rc;
}

/* A URI of another scheme could be a script. */
static bool
is_web(const char *uri)
{
	return strncasecmp(uri, "https://", 8) == 0 ||
	    strncasecmp(uri, "http://", 7) == 0;
}

enum rc
html_link(struct buf *out, const char *uri, const char *text)
{
	if (!is_web(uri)) {
		html_value(out, text);
		buf_adds(out, ": ");
		return html_value(out, uri);
	}
	buf_adds(out, "<a href=\"");
	html_value(out, uri);
	buf_adds(out, "\">");
	html_value(out, text);
	return buf_adds(out, "</a>");
}

/* --- templates ---------------------------------------------------------- */

static enum rc
add_value(struct buf *out, enum html_kind kind, const union html_value *v)
{
	const char *text = v->text != NULL ? v->text : "";

	switch (kind) {
	case HTML_NOTHING:
		break;
	case HTML_TEXT:
		return html_value(out, text);
	case HTML_QUERY:
		return html_query(out, text);
	case HTML_LINES:
		return html_lines(out, text, v->len);
	case HTML_NUMBER:
		return buf_addf(out, "%" PRId64, v->number);
	}
	return RC_OK;
}

void
html_render(struct html *html, const struct html_part *p,
    const union html_value *values)
{
	if (html->rc != RC_OK)
		return;
	for (; p->kind != HTML_NOTHING; p++) {
		buf_adds(html->out, p->markup);
		add_value(html->out, p->kind, &values[p->value]);
	}
	html->rc = buf_adds(html->out, p->markup);
}
