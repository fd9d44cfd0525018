/*
 * The functions of the store on PostgreSQL, by their names in store_ops.h.
 */
#ifndef POSTGRES_H
#define POSTGRES_H

#include "handler_api.h"
#include "store_ops.h"

extern const struct store_ops postgres_ops;

enum rc postgres_open(struct store **out, const struct store_options *o,
    char *err, size_t errsize);

/* handler_api_open() */
enum rc postgres_handler_api_open(struct handler_api **out,
    const char *database, int64_t patience, char *err, size_t errsize);

#define X(type, name, parameters, arguments) type postgres_##name parameters;
STORE_VALUE_OPS(X)
STORE_VOID_OPS(X)
#undef X
void postgres_close(struct store *s);
void postgres_outcome_free(struct store_outcome *outcome);

#endif
