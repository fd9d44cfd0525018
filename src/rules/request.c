/*
 * Lookups in the parameters of a request.
 */
#include "config.h"

#include <string.h>

#include "request.h"

/* strcmp() == 0.  Most names differ in the first byte, and every request looks
 * through some thirty of them a dozen times. */
static inline bool
same(const char *a, const char *b)
{
	return *a == *b && strcmp(a, b) == 0;
}

const char *
request_param(const struct request *req, const char *name)
{
	size_t i;

	for (i = req->nparams; i > 0; i--)
		if (same(req->params[i - 1].name, name))
			return req->params[i - 1].value;
	return NULL;
}

size_t
request_count(const struct request *req, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < req->nparams; i++)
		if (same(req->params[i].name, name))
			n++;
	return n;
}
