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

/* Adds the parameters, but not those that may be secret; libpq decodes their
 * names. */
static void
add_parameters(struct buf *out, const char *at)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz_";
	char separator = '?', keyword[64];
	size_t n;

	for (; *at != '\0'; at += n + (at[n] == '&')) {
		n = strcspn(at, "&");
		snprintf(keyword, sizeof(keyword), "%.*s",
		    (int)strspn(at, plain), at);
		if (at[strlen(keyword)] != '=' || option_is_secret(keyword))
			continue;
		(void)buf_addc(out, separator);
		(void)buf_add(out, at, n);
		separator = '&';
	}
}

/* As libpq finds the parts of the URI; a conninfo string has no name. */
static enum rc
make_name(struct pg_target *t, const char *uri)
{
	const char *at = strstr(uri, "://");
	struct buf *out = &t->name;
	size_t n;

	buf_init(out, NAME_MAX_BYTES);
	if (at == NULL)
		return buf_adds(out, "postgresql:");
	at += strlen("://");
	if (buf_add(out, uri, (size_t)(at - uri)) != RC_OK)
		return RC_NOMEM;
	n = strcspn(at, "@/");
	if (at[n] == '@') {
		(void)buf_add(out, at, strcspn(at, ":@"));
		at += n;
	}
	n = strcspn(at, "?");
	(void)buf_add(out, at, n);
	if (at[n] == '?')
		add_parameters(out, at + n + 1);
	return RC_OK;
}

/* --- secrets -------------------------------------------------------------- */

/* Replaces each occurrence of the secret. */
static void
blot_secret(char *text, const char *secret)
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
			blot_secret(out, o->val);
	for (n = strlen(out); n > 0 && out[n - 1] == '\n'; n--)
		out[n - 1] = '\0';
	/* A line of libpq's may begin with a tab. */
	for (char *p = out; (p = strpbrk(p, "\n\t")) != NULL; p++) {
		n = strspn(p, "\n\t ");
		*p = ' ';
		memmove(p + 1, p + n, strlen(p + n) + 1);
	}
}

/* libpq quotes what it does not understand, which may be a password. */
static void
explain_target(const char *message, char *err, size_t errsize)
{
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
		explain_target(message, err, errsize);
		rc = RC_INVALID;
		goto out;
	}
	rc = count_hosts(t, err, errsize);
	if (rc == RC_OK)
		rc = make_name(t, conninfo);
out:
	PQfreemem(message);
	if (rc != RC_OK) {
		pg_target_free(t);
		return rc;
	}
	*out = t;
	return RC_OK;
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
