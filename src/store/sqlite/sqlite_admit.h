/*
 * What the transaction of store_admit.h does with a request: see tx.h.
 */
#ifndef SQLITE_ADMIT_H
#define SQLITE_ADMIT_H

#include "db.h"
#include "store_admit.h"

enum rc sqlite_admit_request(struct store_admit *p, struct db *db, int64_t id);
enum rc sqlite_admit_part(struct store_admit *p, struct db *db, bool *more);

#endif
