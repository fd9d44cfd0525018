/*
 * What mux_stop.c offers to mux.c, and to nobody else: only the thread that
 * leads calls it.
 */
#ifndef MUX_IMPL_H
#define MUX_IMPL_H

#include "conn.h"
#include "mux.h"

/* Whether mux_refuse() or mux_stop() was called. */
bool mux_is_refusing(struct mux *);

/* One step towards the end.  Whether it made one: the round is over, for there
 * may be no more to wait for. */
bool mux_advance(struct mux *);

/* Closes the parked connections of a list: all, or those that wait for a
 * request. */
void mux_close_all(struct mux *, struct conn_list *, bool all);

#endif
