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

#define X(name, text, reason) text,
static const char *const version_1[] = { SCHEMA(X) };
static const char *const version_2[] = { MIGRATE_002(X) };
static const char *const version_3[] = { MIGRATE_003(X) };
static const char *const version_4[] = { MIGRATE_004(X) };
#undef X

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *const *text;
	size_t n;
} steps[QUERIES_VERSION] = {
	{ version_1, COUNT(version_1) },
	{ version_2, COUNT(version_2) },
	{ version_3, COUNT(version_3) },
	{ version_4, COUNT(version_4) },
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
queries_step(int version, size_t *n)
{
	assert(version >= 1 && version <= QUERIES_VERSION);
	*n = steps[version - 1].n;
	return steps[version - 1].text;
}
