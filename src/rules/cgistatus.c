/*
 * One pass over the lines of a head.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "cgihead_text.h"

#include "cgistatus.h"

/* "HTTP/1.1 200 OK" */
static int
status_line(struct cgihead_text line)
{
	const char *blank;

	if (line.n < 12 || strncmp(line.p, "HTTP/", 5) != 0 ||
	    (blank = memchr(line.p, ' ', line.n)) == NULL)
		return 0;
	line.n -= (size_t)(blank + 1 - line.p);
	line.p = blank + 1;
	return cgihead_text_status(line);
}

int
cgistatus_peek(const char *output, size_t len)
{
	struct cgihead_text rest = { output, len }, line, name, value;
	int first = 0, status = 0;
	bool redirects = false, any = false;

	while (cgihead_text_line(&rest, &line)) {
		if (line.n == 0 && any)
			return status != 0 ? status
			    : first != 0   ? first
			    : redirects    ? 302
					   : 200;
		if (!any && (first = status_line(line)) != 0) {
			any = true;
			continue;
		}
		if (!cgihead_text_split(line, &name, &value))
			return 0;
		any = true;
		value = cgihead_text_trim(value);
		if (cgihead_text_is(name, "Status"))
			status = cgihead_text_status(value);
		if (cgihead_text_is(name, "Location") && value.n > 0 &&
		    value.p[0] != '/')
			redirects = true;
	}
	return 0;
}
