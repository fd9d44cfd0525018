/*
 * The stored answer of a key, for oncectl show --response.
 */
#ifndef ONCECTL_RESPONSE_H
#define ONCECTL_RESPONSE_H

#include "oncectl.h"

/* Prints the answer that a retry of this key gets.  Returns the exit status. */
int oncectl_response_print(struct oncectl *, const struct record *);

#endif
