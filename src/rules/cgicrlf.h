/*
 * The head of a response that is streamed: its lines end in CR LF, whatever the
 * program ends them with, as fcgiwrap passes them on.  All other bytes stay as
 * they are: the web server reads the fields.
 */
#ifndef CGICRLF_H
#define CGICRLF_H

#include <stdbool.h>
#include <stddef.h>

/* Where the output stands.  All zero: before its first byte. */
struct cgicrlf {
	enum cgicrlf_state {
		CGICRLF_START,
		CGICRLF_LINE,   /* within a line */
		CGICRLF_CR,     /* after a CR that ends a line */
		CGICRLF_END,    /* after the end of a line */
		CGICRLF_END_CR, /* after that and a CR */
		CGICRLF_BODY,
		CGICRLF_REFUSED /* the output begins with an empty line */
	} state;
};

/*
 * Passes on the next len bytes of the output.  out has room for twice as many;
 * returns how many were put there.  After an output that begins with an empty
 * line, which says that there is no head, nothing is passed on.
 */
size_t cgicrlf_pass(struct cgicrlf *c, const char *in, size_t len, char *out);

/* Whether the head has ended: all further bytes are passed on as they are. */
bool cgicrlf_is_body(const struct cgicrlf *c);

#endif
