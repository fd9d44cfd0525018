/*
 * HTML of our own.  All text of a page that is not a literal of this program
 * goes through html_value(), so no value can become markup.
 */
#ifndef HTML_H
#define HTML_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/*
 * Appends a text of one line, for the content of an element or a quoted
 * attribute.  & < > " ' become references.  A control character, and a byte
 * that is no UTF-8, is shown as \xNN, so a value looks like no other one.
 */
enum rc html_value(struct buf *out, const char *text);

/* The same for any bytes, a NUL included; a line break or a tab stays one. */
enum rc html_lines(struct buf *out, const void *bytes, size_t n);

/* Appends a text as a part of a query string, in a quoted attribute. */
enum rc html_query(struct buf *out, const char *text);

/*
 * Appends a link to the URI with that text.  Only http: and https: become a
 * link; of any other URI the text and the URI itself are shown.
 */
enum rc html_link(struct buf *out, const char *uri, const char *text);

/*
 * A page that is being written; the first failure stays.
 *
 * A template is markup with values between.  The kind of a value says how it is
 * escaped; there is none that is not.
 */
struct html {
	struct buf *out;
	enum rc rc;
};

enum html_kind {
	HTML_NOTHING, /* the end */
	HTML_TEXT,    /* html_value() */
	HTML_QUERY,   /* html_query() */
	HTML_LINES,   /* html_lines() */
	HTML_NUMBER
};

struct html_part {
	const char *markup; /* before the value */
	enum html_kind kind;
	unsigned value; /* its number */
};

union html_value {
	int64_t number;
	struct {
		const char *text; /* NULL: as "" */
		size_t len;       /* LINES */
	};
};

struct html_template {
	const char *name;
	const struct html_part *parts;
	unsigned nvalues;
};

void html_render(struct html *html, const struct html_part *parts,
    const union html_value *values);

#endif
