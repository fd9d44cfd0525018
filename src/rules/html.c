/*
 * Text and links of a page.
 */
#include "config.h"

#include <stdbool.h>
#include <strings.h>

#include "utf8.h"

#include "html.h"

/* The reference for a character; NULL: it needs none. */
static const char *
reference(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

enum rc
html_text(struct buf *out, const char *s)
{
	enum rc rc = RC_OK;
	const char *as;
	size_t n;

	for (; rc == RC_OK && *s != '\0'; s += n) {
		n = 1;
		if ((as = reference(*s)) != NULL)
			rc = buf_adds(out, as);
		else if ((*s >= ' ' && *s < 0x7f) || *s == '\n' || *s == '\t')
			rc = buf_addc(out, *s);
		else if ((n = utf8_length(s)) != 0)
			rc = buf_add(out, s, n);
		else {
			rc = buf_addf(out, "\\x%02x", (unsigned char)*s);
			n = 1;
		}
	}
	return rc;
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
	const char *pieces[] = { "<a href=\"", uri, "\">", text, "</a>" };
	enum rc rc = RC_OK;

	if (!is_web(uri)) {
		rc = html_text(out, text);
		if (rc == RC_OK)
			rc = buf_adds(out, ": ");
		return rc == RC_OK ? html_text(out, uri) : rc;
	}
	for (size_t i = 0; i < 5 && rc == RC_OK; i++)
		rc = i % 2 == 0 ? buf_adds(out, pieces[i])
				: html_text(out, pieces[i]);
	return rc;
}
