/*
 * A response that is streamed: its lines end in CR LF, whatever the program
 * ends them with, as fcgiwrap passes them on.  All other bytes stay as they
 * are: the web server reads the fields.  cgihead.h is for responses that are
 * kept.
 */
#ifndef CGISTREAM_H
#define CGISTREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Where the output stands.  All zero: before its first byte. */
struct cgistream {
	enum cgistream_state {
		CGISTREAM_START,
		CGISTREAM_LINE,   /* within a line */
		CGISTREAM_CR,     /* after a CR that ends a line */
		CGISTREAM_END,    /* after the end of a line */
		CGISTREAM_END_CR, /* after that and a CR */
		CGISTREAM_BODY,
		CGISTREAM_REFUSED /* the output begins with an empty line */
	} state;
};

/*
 * Passes on the next len bytes of the output.  out has room for twice as many;
 * returns how many were put there.  After an output that begins with an empty
 * line, which says that there is no head, nothing is passed on.
 */
size_t
cgistream_pass(struct cgistream *c, const char *in, size_t len, char *out);

/* Whether the head has ended: all further bytes are passed on as they are. */
bool cgistream_is_body(const struct cgistream *c);

/*
 * For the log: returns the status at the beginning of a program's output, as
 * cgihead_parse() reads it; 200 if nothing is said of it.  0: the status cannot
 * be told, because the head has no single reading, or does not end within len
 * bytes.
 */
int cgistream_status(const char *output, size_t len);

#endif
