/*
 * Functions of mux_stop.c for mux.c alone.  Only the leader calls them.
 */
#ifndef MUX_IMPL_H
#define MUX_IMPL_H

#include "conn.h"
#include "mux.h"

/* Whether mux_refuse() or mux_stop() was called. */
bool mux_is_refusing(struct mux *m);

/* Makes one step towards the end.  True: it made one, so the round is over, as
 * there may be nothing more to wait for. */
bool mux_advance(struct mux *m);

/* Closes the parked connections of a list: all, or those that wait for a
 * request. */
void mux_close_all(struct mux *m, struct conn_list *list, bool all);

#endif
