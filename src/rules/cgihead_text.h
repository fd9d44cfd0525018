/*
 * The text of a head: lines, folded lines, and what a name and a value may
 * consist of.
 */
#ifndef CGIHEAD_TEXT_H
#define CGIHEAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* A piece of a head; borrowed. */
struct cgihead_text {
	const char *p;
	size_t n;
};

/* A token: RFC 9110, section 5.6.2. */
bool cgihead_text_is_token(struct cgihead_text t);

/* What a field's value may consist of: no control character but the tab (RFC
 * 9110, section 5.5). */
bool cgihead_text_is_value(struct cgihead_text t);

/* Whether the text is that word, in any case of letters. */
bool cgihead_text_is(struct cgihead_text t, const char *word);

/* Returns the text without blanks at its end, or at both ends. */
struct cgihead_text cgihead_text_trim_end(struct cgihead_text t);
struct cgihead_text cgihead_text_trim(struct cgihead_text t);

/* Takes one line off the front of rest, without its LF or CRLF.  False: there
 * is no whole line. */
bool cgihead_text_line(struct cgihead_text *rest, struct cgihead_text *line);

/* Splits a line at its first colon, which neither part has; blanks stay.
 * False: there is none. */
bool cgihead_text_split(struct cgihead_text line, struct cgihead_text *name,
    struct cgihead_text *value);

/* The number that the text begins with, of three digits; 0: there is none. */
int cgihead_text_status(struct cgihead_text t);

/*
 * Takes the lines that continue a field off the front of rest: they begin with
 * a blank (RFC 9112, section 5.2).  If there are any, joins them to line, with
 * one space for each fold; line is then in joined.  RC_OK, or as buf_add().
 */
enum rc cgihead_text_unfold(
    struct cgihead_text *rest, struct cgihead_text *line, struct buf *joined);

/*
 * Finds the head in the first len bytes of an output.  Returns the offset after
 * the empty line that ends it; 0: there is none.  *start is where the head
 * begins, after empty lines in front.
 */
size_t cgihead_text_find(const char *output, size_t len, size_t *start);

#endif
