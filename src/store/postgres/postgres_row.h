/*
 * Rows of keys and of effects: the one reader of each.  Any program with the
 * store's role may have changed them.  So each row is checked where it is read.
 */
#ifndef POSTGRES_ROW_H
#define POSTGRES_ROW_H

#include "kept.h"
#include "postgres_impl.h"
#include "store_outbox.h"

/*
 * Reads the current row (pg_next()) of a statement with the columns $row, or
 * $effect, of queries.sql.  The caller frees *record or *effect after RC_OK.
 * RC_CORRUPT: the row makes no sense, and only .id is set.
 */
enum rc postgres_row_read(struct pg *, struct record *);
enum rc postgres_row_read_effect(struct pg *, struct store_effect *);

/* Goes to the next sound row, and skips the others: see rows_bad().
 * RC_NOTFOUND: there is none. */
enum rc postgres_row_next(const struct store *, struct pg *, struct record *);
enum rc postgres_row_next_effect(
    const struct store *, struct pg *, struct store_effect *);

/* The result of the statement "find", and its record, which has no copy of the
 * identity.  RC_NOTFOUND. */
enum rc postgres_row_find(const struct store *, struct pg *, struct record *);

/* The columns of $response of the current row; pointers into the row. */
enum rc postgres_row_head(struct pg *, struct kept_head *);

/* rows_bad() */
void postgres_row_bad(const struct store *, const char *table, int64_t id);

#endif
