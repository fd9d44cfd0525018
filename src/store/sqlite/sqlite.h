/*
 * The functions of the store on SQLite, by their names in store_ops.h.
 */
#ifndef SQLITE_H
#define SQLITE_H

#include "store_ops.h"

extern const struct store_ops sqlite_ops;

#define X(type, name, parameters, arguments) type sqlite_##name parameters;
STORE_VALUE_OPS(X)
STORE_VOID_OPS(X)
#undef X
void sqlite_close(struct store *store);
void sqlite_outcome_free(struct store_outcome *outcome);

#endif
