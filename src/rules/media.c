/*
 * Media types and the parameters of fields.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"

#include "media.h"

enum rc
media_type(const char *value, size_t len, struct buf *out)
{
	const char *end;
	enum rc rc = RC_OK;

	if (value == NULL)
		return RC_OK;
	if ((end = memchr(value, ';', len)) == NULL)
		end = value + len;
	while (value < end && ascii_is_blank(*value))
		value++;
	while (value < end && ascii_is_blank(end[-1]))
		end--;
	for (; value < end && rc == RC_OK; value++)
		rc = buf_addc(out, ascii_lower(*value));
	return rc;
}

enum rc
media_type_of(const struct request *req, struct buf *out)
{
	const char *value = request_param(req, "CONTENT_TYPE");

	return media_type(value, value != NULL ? strlen(value) : 0, out);
}

bool
media_is(const char *value, const char *type)
{
	const size_t n = strlen(type);

	while (ascii_is_blank(*value))
		value++;
	if (strncasecmp(value, type, n) != 0)
		return false;
	for (value += n; ascii_is_blank(*value);)
		value++;
	return *value == '\0' || *value == ';';
}

bool
media_is_json(const char *type)
{
	static const char suffix[] = "+json"; /* RFC 6839, section 3.1 */
	size_t n = sizeof(suffix) - 1, len = strlen(type);

	return strcmp(type, "application/json") == 0 ||
	    (len > n && strcmp(type + len - n, suffix) == 0);
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
