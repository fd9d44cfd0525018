/*
 * The SQL of sql/postgres, as a table made at build time.  Plain data.
 */
#ifndef PG_QUERY_H
#define PG_QUERY_H

#include "pg_table.h"

/* The version of sql/postgres/schema.sql. */
#define PG_QUERY_VERSION 9

enum pg_query {
#define X(name, text, reason) PG_QUERY_##name,
	PG_SESSION(X) PG_STORE(X) PG_QUERIES(X)
#undef X
	    PG_QUERY_COUNT
};

/* The name, such as "FIND", and the text. */
const char *pg_query_name(enum pg_query q);
const char *pg_query_text(enum pg_query q);

#endif
