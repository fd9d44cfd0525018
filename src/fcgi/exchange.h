/*
 * Sends answers, for the leader.  Inner header of mux.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "conn.h"

/* Sends the rest of an answer that the peer did not take at once.  Afterwards
 * the connection is parked, at its next request, or ended. */
void exchange_send(struct exchange *x);

#endif
