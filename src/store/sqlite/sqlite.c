/*
 * The store on SQLite as a kind of store.
 */
#include "config.h"

#include "sqlite.h"

const struct store_ops sqlite_ops = {
#define X(type, name, parameters, arguments) .name = sqlite_##name,
	STORE_VALUE_OPS(X) STORE_VOID_OPS(X)
#undef X
	    .close = sqlite_close,
	.outcome_free = sqlite_outcome_free,
};
