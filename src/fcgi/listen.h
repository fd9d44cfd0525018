/*
 * The listening socket: made, or inherited.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>

#include "conf.h"

/*
 * Opens conf->socket, whose form conf has checked, else systemd's LISTEN_FDS,
 * else descriptor 0.  Returns a nonblocking, close-on-exec socket that listens,
 * or -1 with a message that names it in err.  *path is the unix socket to be
 * removed at the end, or NULL; the caller frees it.
 *
 * A unix socket that no process listens on is replaced.  A unix socket that a
 * process listens on, or a file that is no socket, is an error.
 */
int listen_open(const struct conf *conf, char **path, struct conf_error *err);

#endif
