/*
 * Configuration values: one item of a list, a single name, or a place
 * where a key can be.
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
#include "limit.h"

#include "conf_value.h"

#define HEX CONF_DIGITS "ABCDEFabcdef"
/* RFC 3986, section 2, without '#': problems append "#code". */
#define URI CONF_LETTERS CONF_DIGITS "-._~:/?[]@!$&'()*+,;=%"

/* The length of a field name.  Its CGI variable is longer by "HTTP_". */
#define FIELD_MAX 200

/* Ids end before (uid_t)-1, which the kernel takes for "no user". */
static bool
is_account(const char *s)
{
	struct conf_error why;
	unsigned id;

	if (conf_value_made_of(s, CONF_DIGITS))
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

	if (n == 0 || strspn(s, CONF_WORD) != n || (*s >= '0' && *s <= '9'))
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

/* Methods are case-sensitive, RFC 9110, section 9.1: no client sends "post",
 * and it would leave POST without a guard.  A token may hold more, as in
 * "GET|POST": no such method is registered, and it would guard nothing. */
static bool
is_method(const char *s)
{
	return conf_value_made_of(s, CONF_UPPER CONF_DIGITS "-_");
}

/* A token, RFC 9110, section 5.6.2; so is a cookie's name, RFC 6265, section
 * 4.1.1. */
static bool
is_token(const char *s)
{
	return conf_value_made_of(s, CONF_TOKEN);
}

static bool
is_absolute(const char *s)
{
	return s[0] == '/';
}

static bool
is_log(const char *s)
{
	return is_absolute(s) || strcmp(s, "stderr") == 0 ||
	    strcmp(s, "syslog") == 0;
}

/* The CGI variable of such a field would be taken for that of another field,
 * which never comes. */
static bool
check_field(const char *s, struct conf_error *why)
{
	if (!conf_value_made_of(s, CONF_TOKEN) || strlen(s) > FIELD_MAX)
		return conf_value_fail(
		    why, "\"%.200s\" is not the name of a field", s);
	if (strncasecmp(s, "HTTP_", 5) == 0)
		return conf_value_fail(why,
		    "\"%.200s\" is a CGI variable: write the name of the field",
		    s);
	return true;
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
	bool good = conf_value_made_of(s, CONF_UPPER CONF_DIGITS "_") &&
	    strchr(CONF_UPPER, *s) != NULL;

	if (strcasecmp(s, "none") == 0)
		return conf_value_fail(
		    why, "\"%.200s\": \"none\" stands alone", s);
	if (strncmp(s, "cookie:", 7) == 0)
		return conf_item_check(s + 7, CONF_ITEM_COOKIE, why);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		good = good && strcmp(s, fields[i]) != 0;
	return good ||
	    conf_value_fail(why,
		"\"%.200s\" is not the name of a CGI variable, such as "
		"REMOTE_USER, or HTTP_X_USER for the field X-User",
		s);
}

static bool
is_uri(const char *s)
{
	const size_t scheme = strspn(s, CONF_LETTERS CONF_DIGITS "+-.");

	if (strchr(CONF_LETTERS, *s) == NULL || *s == '\0' ||
	    s[scheme] != ':' || s[scheme + 1] == '\0' ||
	    !conf_value_made_of(s, URI))
		return false;
	/* RFC 3986, section 2.1. */
	while ((s = strchr(s, '%')) != NULL)
		if (strspn(++s, HEX) < 2)
			return false;
	return true;
}

/* SQLite keeps ":memory:" in memory, and takes "file:" for a URI, which could
 * mean the same, or "no locks". */
static bool
text_is_file(const char *text, struct conf_error *why)
{
	if (strcmp(text, ":memory:") == 0 || strncmp(text, "file:", 5) == 0)
		return conf_value_fail(why, "\"%.200s\" is not a file", text);
	/* Not shown: it may have a password. */
	if (conf_text_is_nearly_postgresql(text))
		return conf_value_fail(why,
		    "a PostgreSQL database is named by a URI, which begins "
		    "with postgresql://");
	return strstr(text, "://") == NULL ||
	    conf_value_fail(why, "\"%.200s\" is not a file", text);
}

bool
conf_item_check(const char *s, enum conf_item kind, struct conf_error *why)
{
	static const struct {
		bool (*is)(const char *);
		const char *what;
	} items[] = {
		[CONF_ITEM_METHOD] = { is_method,
		    "a method: write methods in upper case, with blanks "
		    "between them, or \"" CONF_UNSAFE
		    "\" alone, which is all but GET, HEAD, OPTIONS and TRACE" },
		[CONF_ITEM_COOKIE] = { is_token,
		    "the name of a cookie: write cookie:NAME" },
		[CONF_ITEM_POINTER] = { conf_value_is_pointer,
		    "a JSON Pointer, such as /a/0/b" },
		[CONF_ITEM_USER] = { is_user, "the name of a user" },
		[CONF_ITEM_PEER] = { is_account, "the name or id of a user" },
		[CONF_ITEM_ACCOUNT] = { is_account, "a name or an id" },
		[CONF_ITEM_TOPIC] = { is_token, "a token, such as mail" },
		[CONF_ITEM_URI] = { is_uri,
		    "an absolute URI without a fragment, in which a % itself "
		    "is written as %25" },
		[CONF_ITEM_DIRECTORY] = { is_absolute, "an absolute path" },
		[CONF_ITEM_LOG] = { is_log,
		    "stderr, syslog or an absolute path" },
	};

	if (kind == CONF_ITEM_FIELD)
		return check_field(s, why);
	if (kind == CONF_ITEM_SCOPE)
		return check_variable(s, why);
	if (kind == CONF_ITEM_ENVIRONMENT)
		return check_environment(s, why);
	if (kind == CONF_ITEM_DATABASE)
		return conf_text_is_postgresql(s) || text_is_file(s, why);
	assert(kind <= CONF_ITEM_LOG); /* see conf_text_single() */
	return items[kind].is(s) ||
	    conf_value_fail(why, "\"%.200s\" is not %s", s, items[kind].what);
}

/* --- where a key can be --------------------------------------------------- */

static const char *const kinds[] = { CONF_SOURCES(WORDS_WORD) };
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char all_kinds[] =
    "header:NAME, query:NAME, form:NAME, json:/pointer or cookie:NAME";

/* Copies n bytes, with %20, %25, %2B and %2C decoded. */
static char *
decoded_text(struct conf_arena *arena, const char *s, size_t n)
{
	static const struct {
		const char *code;
		char c;
	} codes[] = { { "%20", ' ' }, { "%25", '%' }, { "%2B", '+' },
		{ "%2C", ',' } };
	char *out = conf_value_alloc(arena, n + 1), *to = out;
	const char *end = s + n;
	size_t i;

	if (out == NULL)
		return NULL;
	while (s < end) {
		for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
			if (end - s >= 3 &&
			    strncasecmp(s, codes[i].code, 3) == 0)
				break;
		if (i < sizeof(codes) / sizeof(codes[0])) {
			*to++ = codes[i].c;
			s += 3;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
	return out;
}

static bool
source_read_header(struct conf_source *source, struct conf_arena *arena,
    struct conf_error *why)
{
	char variable[264];

	if (!conf_item_check(source->name, CONF_ITEM_FIELD, why))
		return false;
	if (cginame_variable(source->name, variable, sizeof(variable)) != RC_OK)
		assert(!"conf_item_check() bounds the name");
	source->variable = conf_value_copy(arena, variable, strlen(variable));
	return source->variable != NULL || conf_value_no_memory(why);
}

static bool
check_name(struct conf_source *source, struct conf_arena *arena,
    struct conf_error *why)
{
	const char *kind = kinds[source->kind];

	if (*source->name == '\0')
		return conf_value_fail(
		    why, "\"%s:\" needs a name after the colon", kind);
	switch (source->kind) {
	case CONF_FROM_HEADER:
		return source_read_header(source, arena, why);
	case CONF_FROM_JSON:
		return conf_item_check(source->name, CONF_ITEM_POINTER, why);
	case CONF_FROM_COOKIE:
		return conf_item_check(source->name, CONF_ITEM_COOKIE, why);
	case CONF_FROM_QUERY:
	case CONF_FROM_FORM:
		return true;
	}
	assert(!"a kind");
	return false;
}

static bool
read_source(const char *text, size_t n, struct conf_arena *arena,
    struct conf_source *out, struct conf_error *why)
{
	const char *colon = memchr(text, ':', n);
	const int shown = n < 200 ? (int)n : 200;
	size_t kind = NKINDS, len;

	len = colon != NULL ? (size_t)(colon - text) : 0;
	for (size_t i = 0; i < NKINDS; i++)
		if (len == strlen(kinds[i]) &&
		    strncmp(text, kinds[i], len) == 0)
			kind = i;
	if (kind == NKINDS)
		return conf_value_fail(why,
		    "\"%.*s\" does not say where the key is: write %s", shown,
		    text, all_kinds);
	out->kind = (enum conf_source_kind)kind;
	out->variable = NULL;
	out->name = decoded_text(arena, colon + 1, n - len - 1);
	if (out->name == NULL)
		return conf_value_no_memory(why);
	return check_name(out, arena, why);
}

bool
conf_item_source(const char *text, struct conf_arena *arena,
    struct conf_alternative *out, struct conf_error *why)
{
	const size_t max = sizeof(out->part) / sizeof(out->part[0]);
	const char *part = text;
	size_t n;

	out->n = 0;
	for (;;) {
		n = strcspn(part, "+");
		if (out->n == max || n == 0)
			return conf_value_fail(why,
			    "\"%.200s\" is not one place, or two with a plus "
			    "between them; a plus within a name is written as "
			    "%%2B",
			    text);
		if (!read_source(part, n, arena, &out->part[out->n++], why))
			return false;
		if (part[n] == '\0')
			break;
		part += n + 1;
	}
	out->text = conf_value_copy(arena, text, strlen(text));
	return out->text != NULL || conf_value_no_memory(why);
}

bool
conf_item_sources(const char *text, struct conf_arena *arena,
    struct conf_key_from *out, struct conf_error *why)
{
	struct conf_alternative *list;
	char item[LIMIT_CONF_LINE + 1];
	size_t n = 0;

	list = conf_value_alloc(arena, LIMIT_KEY_FROM * sizeof(*list));
	if (list == NULL)
		return conf_value_no_memory(why);
	while (conf_value_item(&text, item)) {
		if (n == LIMIT_KEY_FROM)
			return conf_value_fail(
			    why, "more than %d items", LIMIT_KEY_FROM);
		if (!conf_item_source(item, arena, &list[n++], why))
			return false;
	}
	if (n == 0)
		return conf_value_fail(why, CONF_VALUE_EMPTY);
	out->item = list;
	out->n = n;
	return true;
}
