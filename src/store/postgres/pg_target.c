/*
 * Where to connect: hosts, options, and a name without passwords.
 */
#include "config.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "clock.h"
#include "pg_impl.h"

#define NAME_MAX_BYTES 4096
#define HOSTS_MAX      16
#define OWN_OPTIONS    9

struct pg_target {
	PQconninfoOption *options; /* as given; .val is NULL for the others */
	int64_t silence;
	int nhosts;       /* 0: libpq finds the host itself */
	atomic_int first; /* that worked last */
	struct buf name;
};

static const char *
option(const struct pg_target *t, const char *keyword)
{
	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val;
	return NULL;
}

/* Item i of a list with commas.  A list of one item is the same for all. */
static char *
list_item(const char *list, int i)
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
	const char *hosts = option(t, "host"), *ports = option(t, "port");
	const int n = list_length(hosts);
	char *host, *port;

	for (int i = 0; i < n; i++) {
		host = list_item(hosts, i);
		port = list_item(ports, i);
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
		list_length(option(t, "host")) > 0);
}

static enum rc
make_name(struct pg_target *t)
{
	const char *user = option(t, "user"), *database = option(t, "dbname");
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
	for (char *p = out; (p = strchr(p, '\n')) != NULL; p++)
		*p = ' ';
}

/* libpq quotes what it does not understand, which may be a password. */
static void
explain(const char *message, char *err, size_t errsize)
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
	const int names = list_length(option(t, "host"));
	const int addresses = list_length(option(t, "hostaddr"));
	const int ports = list_length(option(t, "port"));

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
		explain(message, err, errsize);
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

const char *
pg_target_name(const struct pg_target *t)
{
	return t->name.data;
}

/* --- connecting ----------------------------------------------------------- */

struct arguments {
	const char **keyword, **value;
	int n;
};

static void
add_argument(struct arguments *a, const char *keyword, const char *value)
{
	a->keyword[a->n] = keyword;
	a->value[a->n++] = value;
}

/* Adds an option unless the configuration has it. */
static void
add_default(struct arguments *a, const struct pg_target *t, const char *keyword,
    const char *value)
{
	if (option(t, keyword) == NULL)
		add_argument(a, keyword, value);
}

static bool
option_is_of_host(const char *keyword)
{
	return strcmp(keyword, "host") == 0 ||
	    strcmp(keyword, "hostaddr") == 0 || strcmp(keyword, "port") == 0;
}

/* libpq would write it to stderr. */
static void
ignore_notice(void *arg, const PGresult *notice)
{
	(void)arg;
	(void)notice;
}

static PGconn *
start_connect(const struct pg_target *t, int i, struct arguments *a)
{
	char *host = list_item(option(t, "host"), i);
	char *address = list_item(option(t, "hostaddr"), i);
	char *port = list_item(option(t, "port"), i);
	char silence[24];
	PGconn *conn;

	snprintf(silence, sizeof(silence), "%lld", (long long)t->silence);
	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++)
		if (o->val != NULL && !option_is_of_host(o->keyword))
			add_argument(a, o->keyword, o->val);
	if (host != NULL)
		add_argument(a, "host", host);
	if (address != NULL)
		add_argument(a, "hostaddr", address);
	if (port != NULL)
		add_argument(a, "port", port);
	add_default(a, t, "target_session_attrs", "read-write");
	add_default(a, t, "fallback_application_name", "oncewrap");
	add_default(a, t, "client_encoding", "UTF8");
	add_default(a, t, "keepalives_idle", "5");
	add_default(a, t, "keepalives_interval", "2");
	add_default(a, t, "keepalives_count", "3");
	add_default(a, t, "tcp_user_timeout", silence);
	add_argument(a, NULL, NULL);
	conn = PQconnectStartParams(a->keyword, a->value, 0);
	(void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
	free(host);
	free(address);
	free(port);
	return conn;
}

static enum rc
finish_connect(PGconn *conn, int64_t deadline)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (PQstatus(conn) == CONNECTION_BAD)
		return RC_IO;
	while (next != PGRES_POLLING_OK) {
		if (next == PGRES_POLLING_FAILED)
			return RC_IO;
		if (!pg_wait(conn,
			next == PGRES_POLLING_READING ? POLLIN : POLLOUT,
			deadline))
			return RC_TIMEOUT;
		next = PQconnectPoll(conn);
	}
	return PQsetnonblocking(conn, 1) == 0 && PQenterPipelineMode(conn) == 1
	    ? RC_OK
	    : RC_IO;
}

static enum rc
connect_to(struct pg_target *t, int host, int64_t deadline, PGconn **out,
    struct buf *why)
{
	struct arguments a = { NULL, NULL, 0 };
	enum rc rc = RC_NOMEM;
	size_t n = OWN_OPTIONS + 3;
	PGconn *conn = NULL;

	for (const PQconninfoOption *o = t->options; o->keyword != NULL; o++)
		n++;
	a.keyword = calloc(n, sizeof(*a.keyword));
	a.value = calloc(n, sizeof(*a.value));
	if (a.keyword != NULL && a.value != NULL)
		conn = start_connect(t, host, &a);
	if (conn != NULL)
		rc = finish_connect(conn, deadline);
	if (rc == RC_OK) {
		*out = conn;
	} else {
		if (why->len > 0)
			(void)buf_adds(why, "; ");
		if (rc == RC_TIMEOUT)
			(void)buf_addf(why, "no answer in time from %s:%s",
			    PQhost(conn), PQport(conn));
		else if (conn != NULL)
			(void)buf_adds(why, PQerrorMessage(conn));
		if (conn != NULL && PQconnectionNeedsPassword(conn))
			(void)buf_adds(why,
			    " (write it into a file with mode 0600, and name "
			    "that file in PGPASSFILE)");
		PQfinish(conn);
	}
	free(a.keyword);
	free(a.value);
	return rc;
}

/* A host that is silent uses up its part of the time only. */
enum rc
pg_target_connect(struct pg_target *t, int64_t deadline, PGconn **out,
    char *message, size_t size)
{
	const int n = t->nhosts > 0 ? t->nhosts : 1;
	const int first = atomic_load(&t->first);
	enum rc rc = RC_IO;
	struct buf why;
	int64_t now;
	int host;

	*out = NULL;
	buf_init(&why, PG_MESSAGE_MAX - 1);
	for (int i = 0; i < n && rc != RC_OK; i++) {
		now = clock_mono();
		host = (first + i) % n;
		rc = connect_to(
		    t, host, now + (deadline - now) / (n - i), out, &why);
		if (rc == RC_OK)
			atomic_store(&t->first, host);
	}
	pg_target_scrub(t, why.data, message, size);
	buf_free(&why);
	return rc;
}
