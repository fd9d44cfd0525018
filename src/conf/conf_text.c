/*
 * Configuration values that stay text: names, paths, addresses, and lists of
 * them.
 *
 * Only their form is checked: whether a user, a host or a file exists is not
 * for pure code to find out.  This file knows no option, no section and no
 * line.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "buf.h"
#include "cginame.h"
#include "conf_value.h"
#include "limit.h"

#define BLANKS " \t"
#define HEX    CONF_DIGITS "ABCDEFabcdef"

bool
conf_text_list(const char *text, enum conf_item kind, bool empty,
    struct conf_arena *arena, struct conf_list *out, struct conf_error *why)
{
	struct conf_list list = { NULL, 0 };
	char item[LIMIT_CONF_LINE + 1];

	/* One more for the NULL at the end. */
	list.item =
	    conf_value_alloc(arena, (LIMIT_CONF_LIST + 1) * sizeof(*list.item));
	if (list.item == NULL)
		return conf_value_no_memory(why);
	if (kind == CONF_ITEM_SCOPE && strcmp(text, "none") == 0) {
		*out = list;
		return true;
	}
	while (conf_value_item(&text, item)) {
		if (list.n == LIMIT_CONF_LIST)
			return conf_value_fail(
			    why, "more than %d items", LIMIT_CONF_LIST);
		if (kind == CONF_ITEM_METHOD &&
		    strcmp(item, CONF_UNSAFE) == 0) {
			if (list.n > 0 ||
			    *(text + strspn(text, " \t,")) != '\0')
				return conf_value_fail(
				    why, "\"" CONF_UNSAFE "\" stands alone");
		} else if (!conf_item_check(item, kind, why))
			return false;
		list.item[list.n] = conf_value_copy(arena, item, strlen(item));
		if (list.item[list.n++] == NULL)
			return conf_value_no_memory(why);
	}
	if (list.n == 0 && !empty)
		return conf_value_fail(why, CONF_VALUE_EMPTY);
	*out = list;
	return true;
}

/*
 * Takes one word off the front of *text and appends it to out, which has room
 * for the whole text.  POSIX, Shell Command Language, section 2.2.
 */
static bool
shell_word(const char **text, char **out, struct conf_error *why)
{
	const char *s = *text;
	char *to = *out;
	char quote = '\0';

	for (; *s != '\0'; s++) {
		if (quote == '\0' && strchr(BLANKS, *s) != NULL)
			break;
		if (quote == '\0' && (*s == '"' || *s == '\'')) {
			quote = *s;
		} else if (quote != '\0' && *s == quote) {
			quote = '\0';
		} else if (*s == '\\' && quote != '\'') {
			if (s[1] == '\0')
				return conf_value_fail(
				    why, "a backslash at the end");
			/* Within "..." a backslash stands for itself before
			 * most bytes. */
			if (quote == '"' && strchr("\"\\$`", s[1]) == NULL)
				*to++ = *s;
			*to++ = *++s;
		} else {
			*to++ = *s;
		}
	}
	if (quote != '\0')
		return conf_value_fail(why, "a quote %c is not closed", quote);
	*to++ = '\0';
	*text = s;
	*out = to;
	return true;
}

bool
conf_text_argv(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why)
{
	char *argv[LIMIT_CONF_LIST + 1] = { NULL };
	size_t n = 0;
	char *to;

	/* Words and their NULs are no longer than the text and its NUL. */
	if ((to = conf_value_alloc(arena, strlen(text) + 1)) == NULL)
		return conf_value_no_memory(why);
	for (text += strspn(text, BLANKS); *text != '\0';
	     text += strspn(text, BLANKS)) {
		if (n == LIMIT_CONF_LIST)
			return conf_value_fail(
			    why, "more than %d words", LIMIT_CONF_LIST);
		argv[n++] = to;
		if (!shell_word(&text, &to, why))
			return false;
	}
	return conf_text_words(argv, arena, out, why);
}

bool
conf_text_words(char *const *argv, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why)
{
	struct conf_list list = { NULL, 0 };
	size_t n = 0;

	while (argv[n] != NULL)
		n++;
	if (n == 0)
		return conf_value_fail(why, CONF_VALUE_EMPTY);
	/* A relative path has no base: the daemon's folder is not the
	 * handler's. */
	if (argv[0][0] != '/')
		return conf_value_fail(why,
		    "the program \"%.200s\" is not an absolute path", argv[0]);
	list.item = conf_value_alloc(arena, (n + 1) * sizeof(*list.item));
	if (list.item == NULL)
		return conf_value_no_memory(why);
	for (; list.n < n; list.n++) {
		list.item[list.n] =
		    conf_value_copy(arena, argv[list.n], strlen(argv[list.n]));
		if (list.item[list.n] == NULL)
			return conf_value_no_memory(why);
	}
	*out = list;
	return true;
}

/* host:port, where a host that has colons stands in brackets. */
static bool
is_tcp(const char *s)
{
	const char *port = strrchr(s, ':');
	char host[256];
	size_t n;
	unsigned number;
	struct conf_error why;

	if (port == NULL || (n = (size_t)(port - s)) >= sizeof(host) ||
	    !conf_value_number(port + 1, 1, 65535, &number, &why))
		return false;
	memcpy(host, s, n);
	host[n] = '\0';
	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		return strchr(host, ':') != NULL &&
		    conf_value_made_of(host + 1, CONF_WORD ".:%-");
	}
	return conf_value_made_of(host, CONF_WORD ".-") && host[0] != '-';
}

/* forms: how an address is written, for the error. */
static bool
address_text(const char *text, struct conf_arena *arena, const char **out,
    const char *forms, struct conf_error *why)
{
	const struct sockaddr_un *address = NULL;
	const char *path = NULL;
	unsigned fd;
	char *copy;

	if (text[0] == '/')
		path = text;
	else if (strncmp(text, "unix:", 5) == 0 && text[5] == '/')
		path = text + 5;
	if (path != NULL && strlen(path) >= sizeof(address->sun_path))
		return conf_value_fail(why,
		    "the path of a unix socket is longer than %zu bytes",
		    sizeof(address->sun_path) - 1);
	if (path == NULL &&
	    !(strncmp(text, "tcp:", 4) == 0 && is_tcp(text + 4)) &&
	    !(strncmp(text, "fd:", 3) == 0 &&
		conf_value_number(text + 3, 0, 65535, &fd, why)))
		return conf_value_fail(
		    why, "\"%.200s\" is not %s", text, forms);
	if (path == NULL)
		path = text;
	if ((copy = conf_value_alloc(arena, strlen(path) + 6)) == NULL)
		return conf_value_no_memory(why);
	(void)snprintf(copy, strlen(path) + 6, "%s%s",
	    path[0] == '/' ? "unix:" : "", path);
	*out = copy;
	return true;
}

static bool
socket_text(const char *text, struct conf_arena *arena, const char **out,
    struct conf_error *why)
{
	return address_text(
	    text, arena, out, "unix:/path, /path, tcp:host:port or fd:N", why);
}

bool
conf_text_handler(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why)
{
	const char *address = text;
	char **item;

	if (strncmp(text, "unix:", 5) != 0 && strncmp(text, "tcp:", 4) != 0)
		return conf_text_argv(text, arena, out, why);
	if (!address_text(
		text, arena, &address, "unix:/path or tcp:host:port", why))
		return false;
	item = conf_value_alloc(arena, 2 * sizeof(*item));
	if (item == NULL ||
	    (*item = conf_value_copy(arena, address, strlen(address))) == NULL)
		return conf_value_no_memory(why);
	*out = (struct conf_list){ item, 1 };
	return true;
}

/* A path of oncewrap's own: no request below it goes to a handler. */
static bool
own_path(const char *text, struct conf_arena *arena, const char **out,
    struct conf_error *why)
{
	if (!conf_text_path(text, arena, out, why))
		return false;
	if ((*out)[1] == '\0')
		return conf_value_fail(
		    why, "\"%.200s\" leaves no path to the handlers", text);
	return true;
}

bool
conf_text_is_postgresql(const char *database)
{
	return strncmp(database, "postgresql://", 13) == 0 ||
	    strncmp(database, "postgres://", 11) == 0;
}

bool
conf_text_is_nearly_postgresql(const char *database)
{
	if (conf_text_is_postgresql(database))
		return false;
	return strncmp(database, "postgresql:", 11) == 0 ||
	    strncmp(database, "postgres:", 9) == 0 ||
	    (database[0] != '/' && strchr(database, '=') != NULL);
}

bool
conf_text_single(const char *text, enum conf_item kind,
    struct conf_arena *arena, const char **out, struct conf_error *why)
{
	const char *copy;

	if (*text == '\0')
		return conf_value_fail(why, CONF_VALUE_EMPTY);
	if (kind == CONF_ITEM_SOCKET)
		return socket_text(text, arena, out, why);
	if (kind == CONF_ITEM_PATH)
		return own_path(text, arena, out, why);
	if (!conf_item_check(text, kind, why))
		return false;
	if ((copy = conf_value_copy(arena, text, strlen(text))) == NULL)
		return conf_value_no_memory(why);
	*out = copy;
	return true;
}

/* Finds "%2F" and the like, which a user may have copied from an address. */
static bool
is_encoded(const char *s)
{
	while ((s = strchr(s, '%')) != NULL)
		if (strspn(++s, HEX) >= 2)
			return true;
	return false;
}

bool
conf_text_path(const char *text, struct conf_arena *arena, const char **out,
    struct conf_error *why)
{
	struct buf buf;
	const char *path;
	bool good = false;
	enum rc rc;

	if (*text != '/')
		return conf_value_fail(
		    why, "\"%.200s\" does not begin with \"/\"", text);
	/* A request's path has a question mark only as "%3F". */
	if (is_encoded(text) || strpbrk(text, "?#") != NULL)
		return conf_value_fail(why,
		    "\"%.200s\" is percent-encoded, or has a query or "
		    "fragment; "
		    "paths are compared decoded",
		    text);
	buf_init(&buf, LIMIT_PATH);
	if ((rc = cginame_path(text, NULL, &buf)) != RC_OK) {
		(void)conf_value_fail(why, "\"%.200s\": %s", text, rc_text(rc));
		goto out;
	}
	if (buf.len > 1 && buf.data[buf.len - 1] == '/')
		buf_truncate(&buf, buf.len - 1);
	if ((path = conf_value_copy(arena, buf.data, buf.len)) == NULL) {
		(void)conf_value_no_memory(why);
		goto out;
	}
	*out = path;
	good = true;
out:
	buf_free(&buf);
	return good;
}
