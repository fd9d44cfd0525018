/*
 * From bytes to a whole request.  Inner header of mux.
 */
#ifndef CONN_READ_H
#define CONN_READ_H

#include "conn.h"

/*
 * Reads the available input, and parks the connection, hands it to the
 * workers, or ends it.  The caller leads and holds the connection, and no
 * longer holds it afterwards.
 */
void conn_read(struct conn *);

/* Returns a reference to the current configuration; the caller drops it with
 * conf_unref().  If it has changed, the data derived from it is made anew.
 * *unknown: see peers_make(). */
struct conf *conn_read_conf(struct mux *, const char **unknown);

#endif
