/*
 * Accepts new connections.  Inner header of mux; only the leader calls it.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include "conn.h"

/* Whether a connection waits to be accepted. */
bool acceptor_waits(const struct mux *m);

/* Accepts some of the waiting connections and reads from them; returns their
 * number.  When there is no room it stops watching the socket until
 * mux->resume_at. */
unsigned acceptor_run(struct mux *m);

/* Watches the socket again. */
void acceptor_resume(struct mux *m);

/* Stops watching for good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *m);

#endif
