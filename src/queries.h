/*
 * The SQL of sql/, as a table made at build time.  Plain data.
 */
#ifndef QUERIES_H
#define QUERIES_H

#include <stddef.h>

#include "queries_table.h"

enum query {
#define X(name, text, reason) QUERY_##name,
	QUERIES(X)
#undef X
	    QUERY_COUNT
};

/* "FIND"; its text; why its plan may scan a table, or NULL. */
const char *queries_name(enum query);
const char *queries_text(enum query);
const char *queries_scan_reason(enum query);

/* The statements that make a database, and the checks: n texts, in order. */
const char *const *queries_schema(size_t *n);
const char *const *queries_checks(size_t *n);

#endif
