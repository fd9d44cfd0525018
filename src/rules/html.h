/*
 * HTML of our own.  All text of a page that is not a literal of this program
 * goes through html_text(), so no value can become markup.
 */
#ifndef HTML_H
#define HTML_H

#include "buf.h"

/*
 * Appends a text, for the content of an element or a quoted attribute.
 * & < > " ' become references.  A control character, and a byte that is no
 * UTF-8, is shown as \xNN.
 */
enum rc html_text(struct buf *out, const char *text);

/*
 * Appends a link to the URI with that text.  Only http: and https: become a
 * link; of any other URI the text and the URI itself are shown.
 */
enum rc html_link(struct buf *out, const char *uri, const char *text);

#endif
