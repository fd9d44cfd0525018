/*
 * A copy of the whole database, as it was at one moment.
 *
 * It is made by SQLite's backup interface inside a read transaction of the
 * source.  So writers of any process go on, and none of their commits makes the
 * copy begin again.  VACUUM INTO would leave the write-ahead-log mode, and
 * would number the rows of a handler's own tables anew.
 *
 * While the copy is made the write-ahead log cannot be reset: it grows by all
 * that is written meanwhile.
 */
#ifndef DB_COPY_H
#define DB_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"

struct db_copy;

/*
 * Begins a copy into an existing, empty file, which the caller lets no other
 * process open.  No part of its name may be a symbolic link.  The caller uses
 * the source for nothing else until db_copy_end().  On failure *out is NULL.
 */
enum rc db_copy_begin(struct db_copy **out, struct db *source, const char *to);

/* Copies that many pages more; *done: the copy is complete. */
enum rc db_copy_step(struct db_copy *c, int pages, bool *done);

/* Closes the copy and ends the source's transaction.  The file is not synced.
 * *bytes: its length, if the copy is complete.  NULL is legal. */
enum rc db_copy_end(struct db_copy *c, uint64_t *bytes);

#endif
