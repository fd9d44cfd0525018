/*
 * The key that a JSON Pointer names in a text that was read.
 *
 * The text has no blanks and is known to be well formed, so values are skipped
 * by looking at quotes and brackets alone.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "json_string.h"
#include "json_impl.h"
#include "json_find.h"

/* Returns the end of the value that begins at p. */
static const char *
value_end(const char *p)
{
	size_t depth = 0;

	for (; *p != '\0'; p++) {
		while (*p == '"')
			p = json_string_end(p);
		if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
			break;
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		if (*p == '\0')
			break;
	}
	return p;
}

/* Cuts the next token off a pointer, into room as long as the pointer. */
static void
take_token(const char **pointer, char *token)
{
	const char *p = *pointer + 1;

	for (; *p != '\0' && *p != '/'; p++) {
		if (*p == '~')
			*token++ = *++p == '0' ? '~' : '/';
		else
			*token++ = *p;
	}
	*token = '\0';
	*pointer = p;
}

/* Returns the value of the member, or NULL. */
static const char *
member(const char *p, const char *name)
{
	bool same;

	for (p++; *p == '"' || *p == ','; p = value_end(p)) {
		if (*p == ',')
			p++;
		same = json_string_order_text(p, name) == 0;
		p = json_string_end(p) + 1; /* the colon */
		if (same)
			return p;
	}
	return NULL;
}

/* Returns the element of that index, or NULL. */
static const char *
element(const char *p, const char *index)
{
	const size_t n = strspn(index, "0123456789");
	unsigned long i;

	/* RFC 6901, section 4: no leading zeros. */
	if (n == 0 || index[n] != '\0' || n > 9 || (*index == '0' && n > 1))
		return NULL;
	i = strtoul(index, NULL, 10);
	for (p++; *p != ']'; p++) {
		if (i-- == 0)
			return p;
		p = value_end(p);
		if (*p == ']')
			break;
	}
	return NULL;
}

static enum json_found
add_string(const char *p, struct buf *out, enum rc *rc)
{
	/* A key has no control characters: which one it is does not matter. */
	for (p++; *p != '"' && *rc == RC_OK; p++) {
		if (*p != '\\')
			*rc = buf_addc(out, *p);
		else if (*++p == '"' || *p == '\\')
			*rc = buf_addc(out, *p);
		else
			*rc = buf_addc(out, '\n');
	}
	return JSON_FOUND;
}

/* A canonical number: digits, a point and digits, an exponent. */
static enum json_found
add_integer(const char *p, struct buf *out, enum rc *rc)
{
	const char *digits = "0123456789";
	size_t n, fraction = 0;
	unsigned long exponent = 0;

	if (*p == '-')
		*rc = buf_addc(out, *p++);
	n = strspn(p, digits);
	if (*rc == RC_OK)
		*rc = buf_add(out, p, n);
	p += n;
	if (*p == '.') {
		fraction = strspn(++p, digits);
		if (*rc == RC_OK)
			*rc = buf_add(out, p, fraction);
		p += fraction;
	}
	if (*p == 'e') {
		if (*++p == '-')
			return JSON_NO_KEY;
		n = strspn(p, digits);
		exponent = n > 6 ? 1000000 : strtoul(p, NULL, 10);
	}
	if (exponent < fraction)
		return JSON_NO_KEY;
	for (exponent -= fraction; exponent > 0 && *rc == RC_OK; exponent--)
		*rc = buf_addc(out, '0');
	return JSON_FOUND;
}

enum json_found
json_find(
    const struct json *json, const char *pointer, struct buf *out, enum rc *rc)
{
	const char *p = json->text.data;
	char *token = malloc(strlen(pointer) + 1);
	enum json_found found = JSON_NO_KEY;

	*rc = token != NULL ? RC_OK : RC_NOMEM;
	while (*rc == RC_OK && p != NULL && *pointer == '/') {
		take_token(&pointer, token);
		if (*p == '{')
			p = member(p, token);
		else if (*p == '[')
			p = element(p, token);
		else
			p = NULL;
	}
	free(token);
	if (*rc != RC_OK || p == NULL)
		return JSON_ABSENT;
	if (*p == '"')
		found = add_string(p, out, rc);
	else if (*p == '-' || (*p >= '0' && *p <= '9'))
		found = add_integer(p, out, rc);
	if (*rc == RC_LIMIT) {
		*rc = RC_OK;
		found = JSON_TOO_LONG;
	}
	return found;
}
