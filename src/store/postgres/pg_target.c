/*
 * Where to connect: hosts, options, and a name without passwords.  pg_connect.c
 * connects.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "pg_impl.h"

#define NAME_MAX_BYTES 4096
#define HOSTS_MAX      16

const char *
pg_target_option(const struct pg_target *t, const char *keyword)
{
	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val;
	return NULL;
}

char *
pg_target_item(const char *list, int i)
{
	const char *end;

	if (list == NULL)
		return NULL;
	for (; i > 0 && (end = strchr(list, ',')) != NULL; i--)
		list = end + 1;
	return strndup(list, strcspn(list, ","));
}

static int
list_length(const char *list)
{
	int n = 1;

	if (list == NULL || list[0] == '\0')
		return 0;
	for (; (list = strchr(list, ',')) != NULL; list++)
		n++;
	return n;
}

/* --- the name ------------------------------------------------------------- */

static bool
option_is_secret(const char *keyword)
{
	return strstr(keyword, "password") != NULL;
}

static void
add_encoded(struct buf *out, const char *text, const char *more)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (; *text != '\0'; text++)
		if (strchr(plain, *text) != NULL || strchr(more, *text) != NULL)
			(void)buf_addc(out, *text);
		else
			(void)buf_addf(out, "%%%02X", (unsigned char)*text);
}

static void
add_hosts(const struct pg_target *t, struct buf *out)
{
	const char *hosts = pg_target_option(t, "host"),
		   *ports = pg_target_option(t, "port");
	const int n = list_length(hosts);
	char *host, *port;

	for (int i = 0; i < n; i++) {
		host = pg_target_item(hosts, i);
		port = pg_target_item(ports, i);
		if (i > 0)
			(void)buf_addc(out, ',');
		if (host != NULL && strchr(host, ':') != NULL)
			(void)buf_addf(out, "[%s]", host);
		else if (host != NULL)
			add_encoded(out, host, "");
		if (port != NULL && port[0] != '\0')
			(void)buf_addf(out, ":%s", port);
		free(host);
		free(port);
	}
}

/* Options that stand before the question mark. */
static bool
option_is_placed(const struct pg_target *t, const char *keyword)
{
	return strcmp(keyword, "user") == 0 || strcmp(keyword, "dbname") == 0 ||
	    strcmp(keyword, "host") == 0 ||
	    (strcmp(keyword, "port") == 0 &&
		list_length(pg_target_option(t, "host")) > 0);
}

static enum rc
make_name(struct pg_target *t)
{
	const char *user = pg_target_option(t, "user"),
		   *database = pg_target_option(t, "dbname");
	struct buf *out = &t->name;
	char separator = '?';

	buf_init(out, NAME_MAX_BYTES);
	if (buf_adds(out, "postgresql://") != RC_OK)
		return RC_NOMEM;
	if (user != NULL) {
		add_encoded(out, user, "");
		(void)buf_addc(out, '@');
	}
	add_hosts(t, out);
	(void)buf_addc(out, '/');
	if (database != NULL)
		add_encoded(out, database, "");
	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++) {
		if (o->val == NULL || option_is_secret(o->keyword) ||
		    option_is_placed(t, o->keyword))
			continue;
		(void)buf_addf(out, "%c%s=", separator, o->keyword);
		add_encoded(out, o->val, "/,");
		separator = '&';
	}
	return RC_OK;
}

/* --- secrets -------------------------------------------------------------- */

/* Replaces each occurrence of the secret. */
static void
blot(char *text, const char *secret)
{
	const size_t n = strlen(secret);
	char *at = text;

	while (n > 0 && (at = strstr(at, secret)) != NULL) {
		memset(at, '*', n);
		at += n;
	}
}

void
pg_target_scrub(
    const struct pg_target *t, const char *message, char *out, size_t size)
{
	size_t n;

	snprintf(out, size, "%s", message);
	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++)
		if (o->val != NULL && option_is_secret(o->keyword))
			blot(out, o->val);
	for (n = strlen(out); n > 0 && out[n - 1] == '\n'; n--)
		out[n - 1] = '\0';
	/* A line of libpq's may begin with a tab. */
	for (char *p = out; (p = strpbrk(p, "\n\t")) != NULL; p++) {
		n = strspn(p, "\n\t ");
		*p = ' ';
		memmove(p + 1, p + n, strlen(p + n) + 1);
	}
}

/* libpq quotes what it does not understand, which may be a password.  A
 * parameter's name is shown if a URI has it in the place of one. */
static void
explain(const char *conninfo, const char *message, char *err, size_t errsize)
{
	static const char parameter[] = "invalid URI query parameter: \"";
	const char *query = strchr(conninfo, '?'), *name, *end;
	const char *at = message != NULL ? strstr(message, parameter) : NULL;
	char whole[64];
	size_t n;

	name = at != NULL ? at + strlen(parameter) : "";
	end = strchr(name, '"');
	n = end != NULL ? (size_t)(end - name) : 0;
	if (query != NULL && n > 0 && n < sizeof(whole) - 2 &&
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] == '"') {
		snprintf(whole, sizeof(whole), "%.*s=", (int)n, name);
		end = strstr(query, whole);
		if (end != NULL && (end[-1] == '?' || end[-1] == '&') &&
		    strchr(query, '@') == NULL) {
			snprintf(err, errsize,
			    "the URI of the PostgreSQL database has a "
			    "parameter that libpq does not know: %.*s",
			    (int)n, name);
			return;
		}
	}
	snprintf(err, errsize,
	    "not a URI or conninfo string of PostgreSQL: %.*s...",
	    message != NULL ? (int)strcspn(message, "\"") : 0,
	    message != NULL ? message : "");
}

/* --- parsing -------------------------------------------------------------- */

static enum rc
count_hosts(struct pg_target *t, char *err, size_t errsize)
{
	const int names = list_length(pg_target_option(t, "host"));
	const int addresses = list_length(pg_target_option(t, "hostaddr"));
	const int ports = list_length(pg_target_option(t, "port"));

	t->nhosts = names > addresses ? names : addresses;
	if ((names > 0 && addresses > 0 && names != addresses) ||
	    (ports > 1 && ports != t->nhosts) || t->nhosts > HOSTS_MAX) {
		snprintf(err, errsize,
		    "host, hostaddr and port of PostgreSQL have %d, %d and %d "
		    "items; the lists must be of one length, of at most %d",
		    names, addresses, ports, HOSTS_MAX);
		return RC_INVALID;
	}
	return RC_OK;
}

enum rc
pg_target_parse(struct pg_target **out, const char *conninfo, int64_t silence,
    char *err, size_t errsize)
{
	struct pg_target *t;
	char *message = NULL;
	enum rc rc = RC_NOMEM;

	*out = NULL;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return RC_NOMEM;
	buf_init(&t->name, 0);
	t->silence = silence;
	t->options = PQconninfoParse(conninfo, &message);
	if (t->options == NULL) {
		explain(conninfo, message, err, errsize);
		rc = RC_INVALID;
		goto out;
	}
	rc = count_hosts(t, err, errsize);
	if (rc == RC_OK)
		rc = make_name(t);
out:
	PQfreemem(message);
	if (rc != RC_OK) {
		pg_target_free(t);
		return rc;
	}
	*out = t;
	return RC_OK;
}

enum rc
pg_target_check(const char *conninfo, char *err, size_t errsize)
{
	struct pg_target *t;
	enum rc rc;

	snprintf(err, errsize, "%s", rc_text(RC_NOMEM));
	if ((rc = pg_target_parse(&t, conninfo, 0, err, errsize)) == RC_OK)
		pg_target_free(t);
	return rc;
}

void
pg_target_free(struct pg_target *t)
{
	if (t == NULL)
		return;
	PQconninfoFree(t->options);
	buf_free(&t->name);
	free(t);
}

void
pg_target_pass(struct pg_target *t)
{
	if (t->nhosts > 1)
		atomic_store(
		    &t->first, (atomic_load(&t->first) + 1) % t->nhosts);
}

const char *
pg_target_name(const struct pg_target *t)
{
	return t->name.data;
}
