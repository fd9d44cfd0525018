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

/* The name, such as "FIND"; the text; and the reason why the plan may scan a
 * table, or NULL. */
const char *queries_name(enum query q);
const char *queries_text(enum query q);
const char *queries_scan_reason(enum query q);

/* The version of sql/schema.sql.  Versions 1 to 4 were never released. */
#define QUERIES_VERSION 20

/* The statements that make the schema in an empty database, and the checks: n
 * texts, in order. */
const char *const *queries_schema(size_t *n);
const char *const *queries_checks(size_t *n);

#endif
