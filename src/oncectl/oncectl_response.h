/*
 * The stored answer of a key, for oncectl show --response.
 */
#ifndef ONCECTL_RESPONSE_H
#define ONCECTL_RESPONSE_H

#include "oncectl.h"

/* Writes bytes as they are; on a terminal, control characters as \xNN. */
void oncectl_response_bytes(const char *p, size_t n);

/* RFC 4648, section 4; the caller frees it.  NULL: no memory. */
char *oncectl_response_base64(const void *bytes, size_t n);

/* Prints the answer that a retry of this key gets.  Returns the exit status. */
int oncectl_response_print(struct oncectl *ctl, const struct record *row);

#endif
