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
void conn_read(struct conn *c);

#endif
