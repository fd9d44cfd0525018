/*
 * The key that a JSON Pointer names in a text that was read.
 *
 * The text has no blanks and is known to be well formed, so values are skipped
 * by looking at quotes and brackets alone.
 */
#include "config.h"

#include <stdlib.h>

#include "json.h"
#include "json_text.h"

#define DIGITS "0123456789"

/* Returns the end of the value that begins at p. */
static const char *
value_end(const char *p)
{
	size_t depth = 0;

	for (; *p != '\0'; p++) {
		while (*p == '"')
			p = json_text_end(p);
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

/* The next byte that a token of a pointer stands for; -1 at its end. */
static int
token_byte(const char **token)
{
	const char c = **token;

	if (c == '/' || c == '\0')
		return -1;
	(*token)++;
	if (c == '~')
		return *(*token)++ == '0' ? '~' : '/';
	return (unsigned char)c;
}

/* Whether the token stands for that name, a canonical string. */
static bool
is_name(const char *name, const char *token)
{
	int x, y;

	name++;
	do {
		x = json_text_byte(&name);
		y = token_byte(&token);
	} while (x == y && x != -1);
	return x == y;
}

/* Returns the value of the member, or NULL. */
static const char *
member(const char *p, const char *token)
{
	const char *name;

	for (p++; *p == '"' || *p == ','; p = value_end(p)) {
		name = *p == ',' ? p + 1 : p;
		p = json_text_end(name) + 1; /* the colon */
		if (is_name(name, token))
			return p;
	}
	return NULL;
}

/* Returns the element of that index, or NULL. */
static const char *
element(const char *p, const char *index)
{
	const size_t n = strspn(index, DIGITS);
	unsigned long i;

	/* RFC 6901, section 4: no leading zeros. */
	if (n == 0 || (index[n] != '\0' && index[n] != '/') || n > 9 ||
	    (*index == '0' && n > 1))
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

static enum rc
add_string(const char *p, struct buf *out)
{
	enum rc rc = RC_OK;
	int c;

	for (p++; rc == RC_OK && (c = json_text_byte(&p)) != -1;)
		rc = buf_addc(out, (char)c);
	return rc;
}

/* A canonical number: digits, a point and digits, an exponent. */
static enum rc
add_integer(const char *p, struct buf *out)
{
	const size_t sign = *p == '-', n = sign + strspn(p + sign, DIGITS);
	const char *fraction = p + n + (p[n] == '.');
	const size_t nfraction = p[n] == '.' ? strspn(fraction, DIGITS) : 0;
	unsigned long exponent = 0;
	enum rc rc;

	if (fraction[nfraction] == 'e') {
		const char *e = fraction + nfraction + 1;

		if (*e == '-')
			return RC_INVALID;
		exponent =
		    strspn(e, DIGITS) > 6 ? 1000000 : strtoul(e, NULL, 10);
	}
	if (exponent < nfraction)
		return RC_INVALID;
	rc = buf_add(out, p, n);
	if (rc == RC_OK)
		rc = buf_add(out, fraction, nfraction);
	for (exponent -= nfraction; exponent > 0 && rc == RC_OK; exponent--)
		rc = buf_addc(out, '0');
	return rc;
}

enum rc
json_find(const struct json *json, const char *pointer, struct buf *out)
{
	const char *p = json->text;

	for (; *pointer == '/'; pointer += strcspn(pointer, "/")) {
		pointer++;
		p = *p == '{'   ? member(p, pointer)
		    : *p == '[' ? element(p, pointer)
				: NULL;
		if (p == NULL)
			return RC_NOTFOUND;
	}
	if (*p == '"')
		return add_string(p, out);
	return *p == '-' || (*p >= '0' && *p <= '9') ? add_integer(p, out)
						     : RC_INVALID;
}
