/*
 * The Prefer field, RFC 7240, section 2:
 *
 *   Prefer     = 1#preference
 *   preference = token [ BWS "=" BWS word ] *( OWS ";" [ OWS parameter ] )
 *   parameter  = token [ BWS "=" BWS word ]
 *   word       = token / quoted-string
 *
 * A server may ignore any of it, so a malformed field is no error: it is
 * treated as missing.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "prefer.h"

#define BLANKS " \t"
/* RFC 9110, section 5.6.2. */
#define TOKEN                                                  \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
	"0123456789!#$%&'*+-.^_`|~"

static const char *
skip_blanks(const char *s)
{
	return s + strspn(s, BLANKS);
}

/* RFC 9110, section 5.6.4.  Returns the end of the string, or NULL.  *empty:
 * it is "". */
static const char *
quoted_string(const char *s, bool *empty)
{
	*empty = s[1] == '"';
	for (s++; *s != '"'; s++) {
		if (*s == '\\')
			s++;
		if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
			return NULL;
	}
	return s + 1;
}

/* token [ BWS "=" BWS word ].  Returns its end, or NULL.  *plain: it has no
 * value, or an empty one, which means the same. */
static const char *
pair(const char *s, size_t *name, bool *plain)
{
	const char *value;
	size_t n;

	*plain = true;
	if ((*name = strspn(s, TOKEN)) == 0)
		return NULL;
	s += *name;
	value = skip_blanks(s);
	if (*value != '=')
		return s;
	value = skip_blanks(value + 1);
	if (*value == '"')
		return quoted_string(value, plain);
	if ((n = strspn(value, TOKEN)) == 0)
		return NULL;
	*plain = false;
	return value + n;
}

/* Takes a preference off the front; returns its end, or NULL. */
static const char *
preference(const char *s, size_t *name, bool *plain)
{
	size_t length;
	bool ignored;

	if ((s = pair(s, name, plain)) == NULL)
		return NULL;
	while (*(s = skip_blanks(s)) == ';') {
		s = skip_blanks(s + 1);
		if (*s == '\0' || *s == ',' || *s == ';')
			continue;
		if ((s = pair(s, &length, &ignored)) == NULL)
			return NULL;
	}
	return *s == '\0' || *s == ',' ? s : NULL;
}

enum verdict { SILENT, ASKS, DECLINES };

/* Judges one field.  A value that is not known declines. */
static enum verdict
judge(const char *s)
{
	static const char wanted[] = "respond-async";
	enum verdict verdict = SILENT;
	const char *next;
	size_t name;
	bool plain;

	for (;;) {
		/* RFC 9110, section 5.6.1.2: empty elements mean nothing. */
		s += strspn(s, BLANKS ",");
		if (*s == '\0')
			return verdict;
		if ((next = preference(s, &name, &plain)) == NULL)
			return SILENT;
		if (verdict == SILENT && name == strlen(wanted) &&
		    strncasecmp(s, wanted, name) == 0)
			verdict = plain ? ASKS : DECLINES;
		s = next;
	}
}

bool
prefer_respond_async(const struct request *request)
{
	enum verdict verdict = SILENT;

	/* Some web servers pass each line of a repeated field as a
	 * parameter. */
	for (size_t i = 0; i < request->nparams && verdict == SILENT; i++)
		if (strcmp(request->params[i].name, "HTTP_PREFER") == 0)
			verdict = judge(request->params[i].value);
	return verdict == ASKS;
}
