/*
 * store_change.h, for the verbs of SQLite that have its connection.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "db.h"
#include "store_change.h"

enum rc store_record_read(struct db *db, int64_t id, struct record *r);
enum rc
store_record_insert(struct db *db, const struct store_identity *identity,
    int64_t number, const struct record *r);
enum rc store_record_write(struct db *db, const struct record *was,
    const struct record *r, const struct step *s,
    const struct kept_columns *answer);

/* That store time, and the wall clock's. */
struct step_time store_record_time(int64_t now);

#endif
