/*
 * The write that records an outcome: see store_outcome.h.
 */
#ifndef SQLITE_OUTCOME_H
#define SQLITE_OUTCOME_H

#include "db.h"
#include "store_outcome.h"

/* The op "body" of struct tx_ops. */
enum rc sqlite_outcome_body(
    struct outcome_change *change, struct db *db, bool drop, bool *more);

#endif
