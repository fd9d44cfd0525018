/*
 * The SQL of sql/, as text.  Code here does not know what runs it.
 */
#include "config.h"

#include <assert.h>

#include "queries.h"

static const struct {
	const char *name, *text, *reason;
} queries[QUERY_COUNT] = {
#define X(name, text, reason) { #name, text, reason },
	QUERIES(X)
#undef X
};

static const char *const schema[] = {
#define X(name, text, reason) text,
	SCHEMA(X)
#undef X
};

/* Only builds with checks load these. */
static const char *const checks[] = {
#define X(name, text, reason) text,
	CHECKS(X)
#undef X
};

const char *
queries_name(enum query q)
{
	assert(q < QUERY_COUNT);
	return queries[q].name;
}

const char *
queries_text(enum query q)
{
	assert(q < QUERY_COUNT);
	return queries[q].text;
}

const char *
queries_scan_reason(enum query q)
{
	assert(q < QUERY_COUNT);
	return queries[q].reason;
}

const char *const *
queries_schema(size_t *n)
{
	*n = sizeof(schema) / sizeof(schema[0]);
	return schema;
}

const char *const *
queries_checks(size_t *n)
{
	*n = sizeof(checks) / sizeof(checks[0]);
	return checks;
}
