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
 * Steps to the next sound row, and skips the others: see store_row_bad().
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

/* rows_bad() */
void store_row_bad(const struct db *db, const char *table, int64_t id);

#endif
