/*
 * Who is alive: locks that the kernel drops with the process.
 *
 * A process that owns leases holds an OFD write lock on one byte of a lock
 * file beside the database.  Which byte is 62 random bits, drawn anew by each
 * process, and is its name in the store: no byte is ever taken over, so a dead
 * owner never looks alive again.  Locks are not bytes: the file stays empty.
 * A process that can open the file could lock all of it, so it is for the
 * daemon's own user, and no handler inherits a descriptor of it.
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

/* The lock file's inode: a lock in another file proves nothing. */
int64_t liveness_file(const struct liveness *);

/* Whether the lock file is still there by its name: if not, others cannot see
 * our lock, and take us for dead. */
bool liveness_in_place(const struct liveness *);

/* This process's name, > 0. */
int64_t liveness_self(const struct liveness *);

/*
 * Whether that owner lives.  RC_IO when it cannot be told (the lock file was
 * removed or replaced): the caller then treats every owner as alive.
 */
enum rc liveness_alive(const struct liveness *, int64_t owner, bool *alive);

/* Whether no other process lives.  False if it cannot be told. */
bool liveness_is_alone(const struct liveness *);

#endif
