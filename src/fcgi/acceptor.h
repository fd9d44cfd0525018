/*
 * Accepts new connections.  Inner header of mux; only the leader calls it.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include "conn.h"

/* Whether a connection waits to be accepted. */
bool acceptor_waits(const struct mux *);

/* Accepts some of the waiting connections and reads from them; returns their
 * number.  When there is no room it stops watching the socket until
 * mux->resume_at. */
unsigned acceptor_run(struct mux *);

/* Watches the socket again. */
void acceptor_resume(struct mux *);

/* Stops watching for good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *);

#endif
