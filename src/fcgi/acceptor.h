/*
 * Takes in new connections.  Inner header of mux; only its thread calls it.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include "conn.h"

/* Whether a connection waits to be accepted. */
bool acceptor_waits(const struct mux *);

/* Accepts some of those that wait, and has them read; how many.  When there is
 * no room it stops watching the socket for a while: mux->resume_at. */
unsigned acceptor_run(struct mux *);

/* Watches the socket again. */
void acceptor_resume(struct mux *);

/* For good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *);

#endif
