/*
 * From bytes to a whole request.  Inner header of mux.
 */
#ifndef INTAKE_H
#define INTAKE_H

#include "conn.h"

/*
 * Reads what there is, and parks the connection, hands it to the workers, or
 * ends it.  The caller, who has the turn, must hold it and does so no longer.
 */
void intake(struct conn *);

/* The current configuration, as a reference; what is derived from it is made
 * anew when it has changed.  *unknown: see peers_make(). */
struct conf *intake_conf(struct mux *, const char **unknown);

#endif
