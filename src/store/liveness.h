/*
 * Which processes are alive: locks that the kernel drops with the process.
 *
 * A process that owns leases holds an OFD write lock on one byte of a lock file
 * beside the database.  The byte's offset is 62 random bits, new for each
 * process, and is its name in the store.  No byte is ever taken over, so a dead
 * owner never looks alive again.  A lock needs no byte in the file, and none is
 * written here.  A process that can open the file could lock all of it.  So
 * only the daemon's own user may open it, and no handler inherits a descriptor
 * of it.
 */
#ifndef LIVENESS_H
#define LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

struct liveness;

/* Opens "<database>-lock" (created with mode if it does not exist) and locks a
 * byte.  mode 0: RC_NOTFOUND if it does not exist.  Other errors are logged and
 * name the file; but for RC_BUSY and RC_NOMEM, errno says why. */
enum rc
liveness_open(struct liveness **out, const char *database, unsigned mode);

/* Drops the lock: from now on the leases of this process are dead. */
void liveness_close(struct liveness *l);

/* The lock file's name. */
const char *liveness_name(const struct liveness *l);

/* The lock file's inode: a lock in another file proves nothing. */
int64_t liveness_file(const struct liveness *l);

/* The number that the kernel gave to the lock file's file system when it was
 * mounted. */
uint64_t liveness_device(const struct liveness *l);

/* This process's name, > 0. */
int64_t liveness_self(const struct liveness *l);

/*
 * Whether that owner lives.  RC_IO if that cannot be determined (the lock file
 * was removed or replaced); the caller then treats every owner as alive.
 */
enum rc liveness_alive(const struct liveness *l, int64_t owner, bool *alive);

/* Whether it is known that that owner is dead. */
bool liveness_is_dead(const struct liveness *l, int64_t owner);

/* Whether no other process lives.  False if that cannot be determined. */
bool liveness_is_alone(const struct liveness *l);

/* Locks the bytes of all processes: until liveness_close() no other process
 * can begin to live.  RC_BUSY: another process lives. */
enum rc liveness_take_all(const struct liveness *l);

#endif
