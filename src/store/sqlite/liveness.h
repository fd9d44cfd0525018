/*
 * Who is alive: locks that the kernel drops with the process.
 *
 * A process that owns leases holds an OFD write lock on one byte of a lock
 * file beside the database.  Which byte is 62 random bits, drawn anew by each
 * process, and is its name in the store: no byte is ever taken over, so a dead
 * owner never looks alive again.  Locks are not bytes: the file stays empty.
 */
#ifndef LIVENESS_H
#define LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

struct liveness;

/* Opens "<database>-lock" (made with mode if it is not there) and takes a
 * byte.  Errors are logged and name the file. */
enum rc liveness_open(struct liveness **, const char *database, unsigned mode);

/* Drops the lock: from now on this process's leases are dead ones. */
void liveness_close(struct liveness *);

/*
 * A lock of its own for one attempt: a new descriptor (close-on-exec; the
 * caller's), and the name of the byte that it holds.  The lock stays until
 * every process that inherited the descriptor has closed it.
 */
enum rc liveness_attempt(const struct liveness *, int *fd, int64_t *name);

/* The lock file's inode: a lock in another file proves nothing. */
int64_t liveness_file(const struct liveness *);

/* Whether the lock file is still there by its name: if not, others cannot see
 * our lock, and take us for dead. */
bool liveness_in_place(const struct liveness *);

/* This process's name, > 0. */
int64_t liveness_self(const struct liveness *);

/*
 * Whether that owner lives, or that attempt's process tree.  RC_IO when it
 * cannot be told (the lock file was removed or replaced): the caller then
 * treats everybody as alive.
 */
enum rc liveness_alive(const struct liveness *, int64_t owner, bool *alive);

/* Whether nobody else lives: no other process, and nothing that an attempt has
 * started.  False if it cannot be told. */
bool liveness_is_alone(const struct liveness *);

#endif
