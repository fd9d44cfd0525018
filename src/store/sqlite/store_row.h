/*
 * Checks on rows.  Rows are untrusted input: any program that can write the
 * file may have changed them.
 */
#ifndef STORE_ROW_H
#define STORE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"

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

/* The number of bad rows in the database; the first of them by table and
 * number. */
enum rc store_row_find_bad(struct db *, int64_t *n, char *names, size_t size);

#endif
