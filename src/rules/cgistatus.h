/*
 * The status of an answer that is streamed: for the log, which only looks at
 * it.  cgihead.h is for responses that are kept.
 */
#ifndef CGISTATUS_H
#define CGISTATUS_H

#include <stddef.h>

/*
 * Returns the status that a web server reads from the beginning of a program's
 * output (RFC 3875, section 6): a Status field, a first line HTTP/1.x NNN, 302
 * for a Location of another server, else 200.  0: the status cannot be told,
 * because the head is no CGI head, or does not end within len bytes.
 */
int cgistatus_peek(const char *output, size_t len);

#endif
