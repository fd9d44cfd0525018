/*
 * The cookies of a request.
 */
#include "config.h"

#include <string.h>

#include "cookie.h"

#define BLANKS " \t"

size_t
cookie_find(const struct request *req, const char *name, const char **value,
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
