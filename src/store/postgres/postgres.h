/*
 * The functions of the store on PostgreSQL, by their names in store_ops.h.
 */
#ifndef POSTGRES_H
#define POSTGRES_H

#include "handler_api_ops.h"
#include "store_ops.h"

extern const struct store_ops postgres_ops;

enum rc postgres_open(
    struct store **, const struct store_options *, char *err, size_t errsize);

/* handler_api_open() */
enum rc postgres_handler_api_open(struct handler_api **, const char *database,
    int64_t patience, char *err, size_t errsize);

#define X(type, name, parameters, arguments) type postgres_##name parameters;
STORE_VALUE_OPS(X)
STORE_VOID_OPS(X)
#undef X
void postgres_close(struct store *);
void postgres_outcome_free(struct store_outcome *);
enum rc postgres_list_next(struct store_cursor *, struct record *);
enum rc postgres_outbox_next(struct store_cursor *, struct store_effect *);
void postgres_list_free(struct store_cursor *);

#endif
