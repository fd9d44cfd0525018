/*
 * Media types and the parameters of fields.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"

#include "media.h"

/* The media type within a field's value: without parameters and outer
 * blanks. */
static const char *
span(const char *value, size_t len, size_t *n)
{
	const char *end = memchr(value, ';', len);

	if (end == NULL)
		end = value + len;
	while (value < end && ascii_is_blank(*value))
		value++;
	while (value < end && ascii_is_blank(end[-1]))
		end--;
	*n = (size_t)(end - value);
	return value;
}

enum rc
media_type(const char *value, size_t len, struct buf *out)
{
	enum rc rc = RC_OK;
	size_t n;

	for (value = span(value, len, &n); n > 0 && rc == RC_OK; n--)
		rc = buf_addc(out, ascii_lower(*value++));
	return rc;
}

bool
media_is(const char *value, size_t len, const char *type)
{
	size_t n;

	value = span(value, len, &n);
	return n == strlen(type) && strncasecmp(value, type, n) == 0;
}

bool
media_is_json(const char *value)
{
	static const char suffix[] = "+json"; /* RFC 6839, section 3.1 */
	const size_t tail = sizeof(suffix) - 1;
	size_t n;

	if (media_is(value, strlen(value), "application/json"))
		return true;
	value = span(value, strlen(value), &n);
	return n > tail && strncasecmp(value + n - tail, suffix, tail) == 0;
}

/*
 * Reads a parameter's value, which ends at a semicolon.  Browsers write
 * %22 for a quote in a name, and no backslash; other programs escape quotes
 * and backslashes, and nothing else (a path with backslashes is left alone).
 */
static enum rc
media_read_value(const char **p, const char *end, struct buf *out)
{
	const char *s = *p;
	enum rc rc = RC_OK;

	if (s < end && *s == '"') {
		for (s++; s < end && *s != '"' && rc == RC_OK; s++) {
			if (*s == '\\' && end - s > 1 &&
			    (s[1] == '"' || s[1] == '\\'))
				s++;
			if (out != NULL)
				rc = buf_addc(out, *s);
		}
		if (rc == RC_OK && s == end)
			rc = RC_INVALID;
		s++;
	} else {
		while (s < end && *s != ';' && !ascii_is_blank(*s) &&
		    rc == RC_OK) {
			if (out != NULL)
				rc = buf_addc(out, *s);
			s++;
		}
	}
	*p = s;
	return rc;
}

enum rc
media_parameter(
    const char *value, size_t len, const char *name, struct buf *out)
{
	const char *p = memchr(value, ';', len), *end = value + len, *start;
	bool found = false, wanted;
	enum rc rc;
	size_t n;

	while (p != NULL && p < end) {
		p++;
		while (p < end && ascii_is_blank(*p))
			p++;
		for (start = p; p < end && *p != '=' && *p != ';'; p++)
			;
		for (n = (size_t)(p - start);
		     n > 0 && ascii_is_blank(start[n - 1]);)
			n--;
		if (p == end || *p == ';')
			continue;
		for (p++; p < end && ascii_is_blank(*p);)
			p++;
		wanted = n == strlen(name) && strncasecmp(start, name, n) == 0;
		if (wanted && found)
			return RC_INVALID;
		found = found || wanted;
		rc = media_read_value(&p, end, wanted ? out : NULL);
		if (rc != RC_OK)
			return rc;
		while (p < end && *p != ';')
			p++;
	}
	return found ? RC_OK : RC_NOTFOUND;
}
