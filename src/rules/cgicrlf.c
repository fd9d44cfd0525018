/*
 * A line ends in LF, CR LF, CR, or CR CR LF, as text does that was converted
 * twice.  The head ends in an empty line; CR CR is none.
 */
#include "config.h"

#include <string.h>

#include "cgicrlf.h"

/* Passes on one character of the head; returns the end of what is put out. */
static char *
pass(struct cgicrlf *c, char in, char *out)
{
	switch (c->state) {
	case CGICRLF_START:
		c->state = CGICRLF_REFUSED;
		if (in == '\r' || in == '\n')
			return out;
		c->state = CGICRLF_LINE;
		break;
	case CGICRLF_LINE:
		if (in == '\n')
			*out++ = '\r';
		c->state = in == '\n' ? CGICRLF_END
		    : in == '\r'      ? CGICRLF_CR
				      : CGICRLF_LINE;
		break;
	case CGICRLF_CR:
		if (in == '\r')
			return out;
		if (in != '\n')
			*out++ = '\n';
		c->state = in == '\n' ? CGICRLF_END : CGICRLF_LINE;
		break;
	case CGICRLF_END:
		if (in == '\n')
			*out++ = '\r';
		c->state = in == '\n' ? CGICRLF_BODY
		    : in == '\r'      ? CGICRLF_END_CR
				      : CGICRLF_LINE;
		break;
	case CGICRLF_END_CR:
		if (in == '\r')
			return out;
		if (in != '\n')
			*out++ = '\n';
		c->state = CGICRLF_BODY;
		break;
	case CGICRLF_BODY:
		break;
	case CGICRLF_REFUSED:
		return out;
	}
	*out++ = in;
	return out;
}

size_t
cgicrlf_pass(struct cgicrlf *c, const char *in, size_t len, char *out)
{
	char *end = out;
	size_t i;

	for (i = 0; i < len && c->state != CGICRLF_BODY; i++)
		end = pass(c, in[i], end);
	memcpy(end, in + i, len - i);
	return (size_t)(end - out) + len - i;
}

bool
cgicrlf_is_body(const struct cgicrlf *c)
{
	return c->state == CGICRLF_BODY;
}
