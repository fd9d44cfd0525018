/*
 * The SQL of sql/postgres, as text.
 */
#include "config.h"

#include <assert.h>

#include "pg_query.h"

static const struct {
	const char *name, *text;
} statements[PG_QUERY_COUNT] = {
#define X(name, text, reason) { #name, text },
	PG_SESSION(X) PG_STORE(X) PG_QUERIES(X)
#undef X
};

const char *
pg_query_name(enum pg_query q)
{
	assert(q < PG_QUERY_COUNT);
	return statements[q].name;
}

const char *
pg_query_text(enum pg_query q)
{
	assert(q < PG_QUERY_COUNT);
	return statements[q].text;
}
