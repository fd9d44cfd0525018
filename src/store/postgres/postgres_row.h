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
 * Reads the current row (pg_next()) of a statement with the columns $row of
 * queries.sql.  The caller frees *r after RC_OK.  RC_CORRUPT: the row makes no
 * sense, and only .id is set.
 */
enum rc postgres_row_read(struct pg *pg, struct record *r);

/* Goes to the next sound row, and skips the others: see rows_bad().
 * RC_NOTFOUND: there is none. */
enum rc
postgres_row_next(const struct store *s, struct pg *pg, struct record *r);

/* The result of the statement "find", and its record, which has no copy of the
 * identity.  RC_NOTFOUND. */
enum rc
postgres_row_find(const struct store *s, struct pg *pg, struct record *r);

/* The columns of $response of the current row; pointers into the row. */
enum rc postgres_row_head(struct pg *pg, struct kept_head *out);

/* rows_bad() */
void postgres_row_bad(const struct store *s, const char *table, int64_t id);

#endif
