/*
 * Rows of keys and of effects: the one reader of each.  Rows are untrusted
 * input: any program that can write the file may have changed them.  So each
 * row is checked where it is read.
 */
#ifndef STORE_ROW_H
#define STORE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "identity.h"
#include "store_outbox.h"

/*
 * Reads the current row of a statement with the columns $row of queries.sql.
 * The caller frees *r after RC_OK.  RC_CORRUPT: the row makes no sense, and
 * only .id is set.
 */
enum rc store_row_read(struct db_stmt *s, struct record *r);

/*
 * Steps to the next sound row, and skips the others: see rows_bad().
 * After RC_OK the caller steps again, or resets the statement.  RC_NOTFOUND:
 * there is none, and the statement is reset.
 */
enum rc store_row_next(struct db *db, struct db_stmt *s, struct record *r);

/*
 * Finds the record of an identity.  RC_OK, RC_NOTFOUND, or the reason why the
 * record cannot be read.  number is that of the identity (see identity.h).  The
 * record has no copy of the identity.  step leaves the statement at the row;
 * the caller resets it in any case.
 */
enum rc store_row_find(struct db *db, const struct store_identity *identity,
    int64_t number, struct record *r);
enum rc store_row_step(struct db *db, const struct store_identity *identity,
    int64_t number, struct record *r, struct db_stmt **s);

/*
 * Recent keys are the last ones, which are in no index of owners or of age (see
 * once_meta in schema.sql).  If they are many, enters those that are no longer
 * recent in the indexes, in the open transaction.  newest: the highest number
 * of a key; recent: that of once_meta.  RC_CORRUPT and RC_IO: perhaps a row
 * cannot be read or changed; then the mark stays.
 */
enum rc store_row_list(struct db *db, int64_t newest, int64_t recent);

/* The same; reads both numbers.  New keys do that too, but perhaps there is
 * none for long. */
enum rc store_row_list_recent(struct db *db);

#endif
