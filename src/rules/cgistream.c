/*
 * What is streamed from a program: the head as it is passed on, and its status
 * for the log.
 */
#include "config.h"

#include <string.h>

#include "cgihead_text.h"

#include "cgistream.h"

/* --- the ends of lines ---------------------------------------------------- */

/* A line ends in LF, CR LF, CR, or CR CR LF, as text does that was converted
 * twice.  The head ends in an empty line; CR CR is none. */

/* Passes on one character of the head; returns the end of what is put out. */
static char *
pass(struct cgistream *c, char in, char *out)
{
	switch (c->state) {
	case CGISTREAM_START:
		c->state = CGISTREAM_REFUSED;
		if (in == '\r' || in == '\n')
			return out;
		c->state = CGISTREAM_LINE;
		break;
	case CGISTREAM_LINE:
		if (in == '\n')
			*out++ = '\r';
		c->state = in == '\n' ? CGISTREAM_END
		    : in == '\r'      ? CGISTREAM_CR
				      : CGISTREAM_LINE;
		break;
	case CGISTREAM_CR:
		if (in == '\r')
			return out;
		if (in != '\n')
			*out++ = '\n';
		c->state = in == '\n' ? CGISTREAM_END : CGISTREAM_LINE;
		break;
	case CGISTREAM_END:
		if (in == '\n')
			*out++ = '\r';
		c->state = in == '\n' ? CGISTREAM_BODY
		    : in == '\r'      ? CGISTREAM_END_CR
				      : CGISTREAM_LINE;
		break;
	case CGISTREAM_END_CR:
		if (in == '\r')
			return out;
		if (in != '\n')
			*out++ = '\n';
		c->state = CGISTREAM_BODY;
		break;
	case CGISTREAM_BODY:
		break;
	case CGISTREAM_REFUSED:
		return out;
	}
	*out++ = in;
	return out;
}

size_t
cgistream_pass(struct cgistream *c, const char *in, size_t len, char *out)
{
	char *end = out;
	size_t i;

	for (i = 0; i < len && c->state != CGISTREAM_BODY; i++)
		end = pass(c, in[i], end);
	memcpy(end, in + i, len - i);
	return (size_t)(end - out) + len - i;
}

bool
cgistream_is_body(const struct cgistream *c)
{
	return c->state == CGISTREAM_BODY;
}

/* --- the status ----------------------------------------------------------- */

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
cgistream_status(const char *output, size_t len)
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
