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
 * Finds the record of an identity.  RC_OK, RC_NOTFOUND, or the reason why the
 * record cannot be read.  number is that of the identity (see identity.h).  The
 * record has no copy of the identity.  The statement stays at the row; the
 * caller resets it in any case.
 */
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
