/*
 * Takes in new connections.  Inner header of mux; only its thread calls it.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include "conn.h"

/* Accepts some of those who wait, and has them read.  When there is no room
 * it stops watching the socket for a while: mux->resume_at. */
void acceptor_run(struct mux *);

/* Watches the socket again. */
void acceptor_resume(struct mux *);

/* For good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *);

#endif
