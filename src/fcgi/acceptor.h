/*
 * New connections.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include <stdbool.h>

#include "conf.h"
#include "rc.h"

struct mux;
struct peers;

/* --- the users that may connect: those that allow_peers names ------------- */

/*
 * Resolves names and numbers; an empty list allows any user.  A name that
 * cannot be resolved allows no user, and the first such name is in *unknown
 * (NULL if there is none).  False when there is no memory; then no user may
 * connect.
 */
bool acceptor_find_peers(
    const struct conf_list *list, struct peers *peers, const char **unknown);
void acceptor_free_peers(struct peers *peers);

/* --- for mux -------------------------------------------------------------- */

/* Watches the socket.  RC_NOMEM, RC_IO: logged. */
enum rc acceptor_start(struct mux *m);

/* Accepts some of the waiting connections and reads from them; returns their
 * number.  When there is no room it stops watching the socket until
 * mux->resume_at. */
unsigned acceptor_run(struct mux *m);

/* Watches it again. */
void acceptor_resume(struct mux *m);

/* Stops watching for good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *m);

#endif
