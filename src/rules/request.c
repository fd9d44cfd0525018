/*
 * Lookups in the parameters of a request.
 */
#include "config.h"

#include <string.h>

#include "request.h"

#define BLANKS " \t"

/* strcmp() == 0.  Most names differ in the first byte, and every request looks
 * through some thirty of them a dozen times. */
static inline bool
same_names(const char *a, const char *b)
{
	return *a == *b && strcmp(a, b) == 0;
}

const char *
request_param(const struct request *req, const char *name)
{
	size_t i;

	for (i = req->nparams; i > 0; i--)
		if (same_names(req->params[i - 1].name, name))
			return req->params[i - 1].value;
	return NULL;
}

size_t
request_count(const struct request *req, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < req->nparams; i++)
		if (same_names(req->params[i].name, name))
			n++;
	return n;
}

size_t
request_cookie(const struct request *req, const char *name, const char **value,
    size_t *len)
{
	const char *p = request_param(req, "HTTP_COOKIE");
	const size_t wanted = strlen(name);
	size_t n, end, found = 0;

	if (request_count(req, "HTTP_COOKIE") > 1)
		return 2;
	for (; p != NULL && *p != '\0'; p += *p == ';') {
		p += strspn(p, BLANKS);
		end = n = strcspn(p, "=;");
		/* Some programs take blanks before '=' for no part of it. */
		while (n > 0 && strchr(BLANKS, p[n - 1]) != NULL)
			n--;
		if (n == wanted && p[end] == '=' && strncmp(p, name, n) == 0) {
			p += end + 1;
			p += strspn(p, BLANKS);
			end = strcspn(p, ";");
			for (n = end; n > 0 && strchr(BLANKS, p[n - 1]);)
				n--;
			if (found++ == 0) {
				*value = p;
				*len = n;
			}
			p += end;
		} else {
			p += strcspn(p, ";");
		}
	}
	return found;
}
