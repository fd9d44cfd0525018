/*
 * What is streamed from a program: the head as it is passed on, and its status
 * for the log.
 */
#include "config.h"

#include <string.h>

#include "cgihead.h"

#include "cgistream.h"

/* --- the ends of lines ---------------------------------------------------- */

/* A line ends in LF, CR LF, CR, or CR CR LF, as text does that was converted
 * twice.  The head ends in an empty line; CR CR is none. */

/* Passes on one character of the head; returns the end of what is put out. */
static char *
pass_character(struct cgistream *c, char in, char *out)
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
		end = pass_character(c, in[i], end);
	memcpy(end, in + i, len - i);
	return (size_t)(end - out) + len - i;
}

bool
cgistream_is_body(const struct cgistream *c)
{
	return c->state == CGISTREAM_BODY;
}

/* --- the status ----------------------------------------------------------- */

int
cgistream_status(const char *output, size_t len)
{
	struct response response;
	struct cgihead head;
	enum cgihead_verdict verdict;
	int status;

	response_init(&response);
	verdict = cgihead_parse(output, len, false, &response, &head);
	/* A web server takes the status 200 where nothing is said of it. */
	status = verdict == CGIHEAD_MISSING ? 200
	    : verdict == CGIHEAD_OK         ? response.status
					    : 0;
	response_free(&response);
	return status;
}
