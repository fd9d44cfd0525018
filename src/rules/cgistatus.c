/*
 * One pass over the lines of a head.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "cgistatus.h"

/* The value of the field if the line has that name; else NULL. */
static const char *
value_of(const char *line, const char *end, const char *name)
{
	size_t n = strlen(name);

	if ((size_t)(end - line) <= n || strncasecmp(line, name, n) != 0 ||
	    line[n] != ':')
		return NULL;
	for (line += n + 1; line < end && (*line == ' ' || *line == '\t');)
		line++;
	return line;
}

/* Three digits; 0: they are none. */
static int
digits(const char *s, const char *end)
{
	int status = 0;

	if (end - s < 3)
		return 0;
	for (int i = 0; i < 3; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		status = status * 10 + s[i] - '0';
	}
	return status;
}

/* "HTTP/1.1 200 OK" */
static int
status_line(const char *line, const char *end)
{
	const char *blank;

	if (end - line < 12 || strncmp(line, "HTTP/", 5) != 0)
		return 0;
	blank = memchr(line, ' ', (size_t)(end - line));
	return blank != NULL ? digits(blank + 1, end) : 0;
}

int
cgistatus_peek(const char *output, size_t len)
{
	const char *p = output, *end = output + len, *newline, *line, *value;
	int first = 0, status = 0;
	bool redirects = false, any = false;

	while ((newline = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		line = p;
		p = newline + 1;
		if (newline > line && newline[-1] == '\r')
			newline--;
		if (newline == line && any)
			return status != 0 ? status
			    : first != 0   ? first
			    : redirects    ? 302
					   : 200;
		if (newline == line)
			return 0;
		if (!any && (first = status_line(line, newline)) != 0) {
			any = true;
			continue;
		}
		if (memchr(line, ':', (size_t)(newline - line)) == NULL)
			return 0;
		any = true;
		if ((value = value_of(line, newline, "Status")) != NULL)
			status = digits(value, newline);
		value = value_of(line, newline, "Location");
		if (value != NULL && value < newline && *value != '/')
			redirects = true;
	}
	return 0;
}
