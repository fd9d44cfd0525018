/*
 * Checks on rows.  Rows are untrusted input: any program that can write the
 * file may have changed them.
 */
#ifndef STORE_ROW_H
#define STORE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "store.h"

/* Whether these columns of the row are the identity of a key. */
bool store_row_is_identity(struct db_stmt *, int scope, int path, int key);

/* Whether the column is NULL, or a number that is neither negative nor so large
 * that a sum with it overflows. */
bool store_row_is_time(struct db_stmt *, int);

/* A count that fits an int. */
bool store_row_is_count(struct db_stmt *, int);

/* Counts a row that is skipped, and logs it.  Each row is logged once, as long
 * as there are few; of many only some are logged. */
void store_row_bad(const struct db *, const char *table, int64_t id);

/* Copies a text of a row into a field of fixed size; false if it is too
 * long. */
bool store_row_copy(struct db_stmt *, int, char *out, size_t size);

/* Reads the record from a row with the columns of QUERY_FIND; lease may be
 * NULL.  RC_CORRUPT: the row makes no sense. */
enum rc
store_row_record(struct db_stmt *, struct record *, struct store_lease *);

/*
 * Finds the record of an identity.  RC_OK, RC_NOTFOUND, or the reason why the
 * record cannot be read.  lease may be NULL: it gets the recovery point.
 * step leaves the statement at the row; the caller resets it in any case.
 */
enum rc store_row_find(struct db *, const struct store_identity *,
    struct record *, struct store_lease *);
enum rc store_row_step(struct db *, const struct store_identity *,
    struct record *, struct store_lease *, struct db_stmt **);

/* The number of bad rows in the database; the first of them by table and
 * number. */
enum rc store_row_find_bad(struct db *, int64_t *n, char *names, size_t size);

#endif
