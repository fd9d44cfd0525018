/*
 * The way back, for the mux thread.  Inner header of mux.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "conn.h"

/* Sends on an answer that the peer did not take at once: the connection is
 * parked, on to its next request, or ended. */
void exchange_send(struct exchange *);

#endif
