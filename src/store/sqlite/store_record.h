/*
 * Changes of a key's record, in the committer's transaction: a verb reads the
 * row, a function of step.h changes the record, and the row is written with all
 * that the change means for what is stored beside it.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "db.h"
#include "kept.h"
#include "step.h"

/* Reads the record of that number, which the caller frees.  RC_LOST: there is
 * no such key, or its row makes no sense, which is logged.  No change waits for
 * such a row: outcomes that cannot be recorded would stop new runs. */
enum rc store_record_read(struct db *db, int64_t id, struct record *r);

/* Both times of a change, for step.h. */
struct step_time store_record_time(int64_t now);

/* Inserts a record that step_reserve() or step_accept() has begun.  number is
 * that of the identity: see identity.h. */
enum rc
store_record_insert(struct db *db, const struct store_identity *identity,
    int64_t number, const struct record *r);

/*
 * Writes the record r as a function of step.h has changed it from *was, a copy
 * of the struct from before that call; its texts may have been freed since.
 * answer: the columns of the response for STEP_SET, else NULL.  Deletes the
 * key, or what is stored beside its row, as s says; the caller writes what s
 * says is set.
 */
enum rc store_record_write(struct db *db, const struct record *was,
    const struct record *r, const struct step *s,
    const struct kept_columns *answer);

#endif
