/*
 * The SQL of sql/checks.sql and sql/operator.sql.  It is a separate file
 * because only builds with checks contain it.
 */
#include "config.h"

#include "queries.h"

static const char *const checks[] = {
#define X(name, text, reason) text,
	CHECKS(X)
#undef X
};

const char *const *
queries_checks(size_t *n)
{
	*n = sizeof(checks) / sizeof(checks[0]);
	return checks;
}

const char *
queries_checks_operator(bool begins)
{
#define X(name, text, reason) text,
	static const char *const texts[] = { OPERATOR(X) };
#undef X

	return texts[begins ? 0 : 1];
}
