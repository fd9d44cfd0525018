/*
 * Configuration values: one item of a list, or a single name.
 *
 * A value that would be accepted and then match nothing is refused here, with
 * what to write instead.  Otherwise a guard that a spelling has switched off
 * is not noticed until a request runs twice.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cginame.h"
#include "conf_near.h"

#include "conf_item.h"

#define DIGITS  "0123456789"
#define UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS UPPER LOWER
#define WORD    LETTERS DIGITS "_"
/* RFC 9110, section 5.6.2. */
#define TOKEN LETTERS DIGITS "!#$%&'*+-.^_`|~"

/* The length of a field name.  Its CGI variable is longer by "HTTP_". */
#define FIELD_MAX 200

static bool
item_made_of(const char *s, const char *bytes)
{
	return conf_value_made_of(s, bytes);
}

/* Ids end before (uid_t)-1, which the kernel takes for "no user". */
static bool
is_account(const char *s)
{
	struct conf_error why;
	unsigned id;

	if (item_made_of(s, DIGITS))
		return conf_value_number(s, 0, UINT32_MAX - 1, &id, &why);
	if (*s == '\0' || *s == '-')
		return false;
	for (; *s != '\0'; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f || *s == ':' ||
		    *s == '/' || *s == ',')
			return false;
	return true;
}

/* Web servers know users by any name, an address or a distinguished name. */
static bool
is_user(const char *s)
{
	if (*s == '\0' || strcmp(s, "*") == 0)
		return false;
	for (; *s != '\0'; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

/*
 * NAME, which is handed on from the daemon's environment, or NAME=value.
 * ONCE_* and HTTP_* describe the request, and LD_* belongs to the daemon's own
 * start: none of them is for the operator to give.
 */
static bool
check_environment(const char *s, struct conf_error *why)
{
	static const char *const ours[] = { "ONCE_", "HTTP_", "LD_" };
	const size_t n = strcspn(s, "=");

	if (n == 0 || strspn(s, WORD) != n || (*s >= '0' && *s <= '9'))
		return conf_value_fail(why,
		    "\"%.200s\" is neither the name of an environment variable "
		    "nor NAME=value",
		    s);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(s, ours[i], strlen(ours[i])) == 0)
			return conf_value_fail(why,
			    "\"%.200s\": %s* variables are never handed on", s,
			    ours[i]);
	if (strcmp(s, "PATH") == 0)
		return conf_value_fail(why, "PATH is always handed on");
	return true;
}

/* In upper case it is accepted, as any token is; -t warns of it. */
static bool
means_unsafe(const char *s)
{
	return strcmp(s, "*") == 0 ||
	    (s[strcspn(s, LOWER)] != '\0' &&
		(strcasecmp(s, "all") == 0 || strcasecmp(s, "any") == 0 ||
		    conf_near_distance(s, CONF_UNSAFE) < 3));
}

/* Methods are case-sensitive, RFC 9110, section 9.1: no client sends "post",
 * and it would leave POST without a guard. */
static bool
check_method(const char *s, struct conf_error *why)
{
	char upper[256];
	size_t n;

	if (means_unsafe(s))
		return conf_value_fail(why,
		    "\"%.200s\" is not a method: write \"" CONF_UNSAFE
		    "\" alone, which is all but GET, HEAD, OPTIONS and TRACE",
		    s);
	/* A token (RFC 9110, section 9.1) may hold more, as in "GET|POST": no
	 * such method is registered, and it would guard nothing. */
	if (!item_made_of(s, LETTERS DIGITS "-_"))
		return conf_value_fail(why,
		    "\"%.200s\" is not a method: write methods with blanks "
		    "between them",
		    s);
	if (s[strcspn(s, LOWER)] == '\0')
		return true;
	for (n = 0; s[n] != '\0' && n < sizeof(upper) - 1; n++)
		upper[n] = strchr(LOWER, s[n]) != NULL
		    ? (char)(s[n] - 'a' + 'A')
		    : s[n];
	upper[n] = '\0';
	return conf_value_fail(why,
	    "\"%.200s\" is not in upper case, as methods are: write \"%.200s\"",
	    s, upper);
}

/* The CGI variable of such a field would be taken for that of another field,
 * which never comes. */
static bool
check_field(const char *s, struct conf_error *why)
{
	if (!item_made_of(s, TOKEN) || strlen(s) > FIELD_MAX)
		return conf_value_fail(
		    why, "\"%.200s\" is not the name of a field", s);
	if (strncasecmp(s, "HTTP_", 5) == 0)
		return conf_value_fail(why,
		    "\"%.200s\" is a CGI variable: write the name of the field",
		    s);
	return true;
}

/* A cookie's name is a token, RFC 6265, section 4.1.1. */
static bool
check_cookie(const char *s, struct conf_error *why)
{
	return item_made_of(s, TOKEN) ||
	    conf_value_fail(why,
		"\"%.200s\" is not the name of a cookie: write cookie:NAME", s);
}

/*
 * A variable that never exists puts all clients into one scope.  So a text
 * that can only be meant as the name of a field is refused.
 */
static bool
check_variable(const char *s, struct conf_error *why)
{
	static const char *const fields[] = { "AUTHORIZATION", "COOKIE",
		"PROXY_AUTHORIZATION" };
	char variable[FIELD_MAX + sizeof("HTTP_")];

	if (strcmp(s, "none") == 0)
		return conf_value_fail(why, "\"none\" stands alone");
	if (strcasecmp(s, "none") == 0)
		return conf_value_fail(
		    why, "\"%.200s\" is not a CGI variable: write \"none\"", s);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(s, fields[i]) == 0)
			return conf_value_fail(why,
			    "\"%.200s\" is a field: write its CGI variable, "
			    "HTTP_%s",
			    s, fields[i]);
	if (strncmp(s, "cookie:", 7) == 0)
		return check_cookie(s + 7, why);
	if (item_made_of(s, UPPER DIGITS "_") && strchr(UPPER, *s) != NULL)
		return true;
	if (strchr(LETTERS, *s) == NULL || !item_made_of(s, WORD "-.") ||
	    strlen(s) > FIELD_MAX)
		return conf_value_fail(
		    why, "\"%.200s\" is not the name of a CGI variable", s);
	if (cginame_variable(s, variable, sizeof(variable)) != RC_OK)
		assert(!"FIELD_MAX bytes have room");
	/* "HTTP-X-User" has the prefix already. */
	if (strncasecmp(s, "HTTP_", 5) == 0 || strncasecmp(s, "HTTP-", 5) == 0)
		return conf_value_fail(why,
		    "\"%.200s\" is not the name of a CGI variable: write "
		    "\"%s\"",
		    s, variable + 5);
	/* "remote_user", or a field: "X-User". */
	return conf_value_fail(why,
	    "\"%.200s\" is not the name of a CGI variable, which is in upper "
	    "case: for the field write \"%s\", else \"%s\"",
	    s, variable,
	    variable + (strncmp(variable, "HTTP_", 5) == 0 ? 5 : 0));
}

bool
conf_item_check(const char *s, enum conf_item kind, struct conf_error *why)
{
	switch (kind) {
	case CONF_ITEM_METHOD:
		return check_method(s, why);
	case CONF_ITEM_FIELD:
		return check_field(s, why);
	case CONF_ITEM_COOKIE:
		return check_cookie(s, why);
	case CONF_ITEM_SCOPE:
		return check_variable(s, why);
	case CONF_ITEM_ENVIRONMENT:
		return check_environment(s, why);
	case CONF_ITEM_POINTER:
		return conf_value_is_pointer(s) ||
		    conf_value_fail(why,
			"\"%.200s\" is not a JSON Pointer, such as /a/0/b", s);
	case CONF_ITEM_USER:
		return is_user(s) ||
		    conf_value_fail(
			why, "\"%.200s\" is not the name of a user", s);
	case CONF_ITEM_ACCOUNT:
		return is_account(s) ||
		    conf_value_fail(
			why, "\"%.200s\" is not the name or id of a user", s);
	}
	assert(false);
	return false;
}
