/*
 * Media types and the parameters of fields.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "response.h"

#include "media.h"

/* The media type within a field's value: without parameters and outer
 * blanks. */
static struct response_text
type_of(const char *value, size_t len)
{
	const char *end = memchr(value, ';', len);
	const size_t n = end != NULL ? (size_t)(end - value) : len;

	return response_text_trim((struct response_text){ value, n });
}

enum rc
media_type(const char *value, size_t len, struct buf *out)
{
	const struct response_text type = type_of(value, len);

	for (size_t i = 0; i < type.n; i++)
		buf_addc(out, ascii_lower(type.p[i]));
	return out->rc;
}

bool
media_is(const char *value, size_t len, const char *type)
{
	return response_text_is(type_of(value, len), type);
}

bool
media_is_json(const char *value)
{
	static const char suffix[] = "+json"; /* RFC 6839, section 3.1 */
	const size_t tail = sizeof(suffix) - 1;
	const struct response_text type = type_of(value, strlen(value));

	return response_text_is(type, "application/json") ||
	    (type.n > tail &&
		strncasecmp(type.p + type.n - tail, suffix, tail) == 0);
}

/*
 * Reads a parameter's value.  Browsers write %22 for a quote in a name, and no
 * backslash; other programs escape quotes and backslashes, and nothing else (a
 * path with backslashes is left alone).  Returns the end of the value; NULL: a
 * quote is not closed.
 */
static const char *
media_read_value(const char *s, const char *end, struct buf *out)
{
	if (s == end || *s != '"') {
		for (; s < end && *s != ';' && !ascii_is_blank(*s); s++)
			buf_addc(out, *s);
		return s;
	}
	for (s++; s < end && *s != '"'; s++) {
		if (*s == '\\' && end - s > 1 && (s[1] == '"' || s[1] == '\\'))
			s++;
		buf_addc(out, *s);
	}
	return s < end ? s + 1 : NULL;
}

static const char *
media_skip_blanks(const char *s, const char *end)
{
	while (s < end && ascii_is_blank(*s))
		s++;
	return s;
}

enum rc
media_parameter(
    const char *value, size_t len, const char *name, struct buf *out)
{
	const char *p = memchr(value, ';', len), *end = value + len, *start;
	struct response_text given;
	bool found = false, wanted;
	struct buf unused;

	while (p != NULL && p < end) {
		for (start = ++p; p < end && *p != '=' && *p != ';'; p++)
			;
		if (p == end || *p == ';')
			continue;
		given = response_text_trim(
		    (struct response_text){ start, (size_t)(p - start) });
		wanted = response_text_is(given, name);
		if (wanted && found)
			return RC_INVALID;
		found = found || wanted;
		buf_init(&unused, 0);
		p = media_read_value(
		    media_skip_blanks(p + 1, end), end, wanted ? out : &unused);
		if (out->rc != RC_OK || p == NULL)
			return out->rc != RC_OK ? out->rc : RC_INVALID;
		while (p < end && *p != ';')
			p++;
	}
	return found ? RC_OK : RC_NOTFOUND;
}
