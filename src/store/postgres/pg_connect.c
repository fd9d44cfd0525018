/*
 * Connecting to the first host of a target that answers.
 */
#include "config.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "clock.h"
#include "pg_impl.h"

/* More than libpq has. */
#define ARGUMENTS 128

struct arguments {
	const char *keyword[ARGUMENTS], *value[ARGUMENTS];
	int n;
};

static void
add_argument(struct arguments *a, const char *keyword, const char *value)
{
	assert(a->n < ARGUMENTS);
	a->keyword[a->n] = keyword;
	a->value[a->n++] = value;
}

/* Adds an option unless the configuration has it. */
static void
add_default(struct arguments *a, const struct pg_target *t, const char *keyword,
    const char *value)
{
	if (pg_target_option(t, keyword) == NULL)
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
start_connect(const struct pg_target *t, int i)
{
	struct arguments arguments = { .n = 0 }, *const a = &arguments;
	char *host = pg_target_item(pg_target_option(t, "host"), i);
	char *address = pg_target_item(pg_target_option(t, "hostaddr"), i);
	char *port = pg_target_item(pg_target_option(t, "port"), i);
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
	add_default(a, t, "target_session_attrs", "primary");
	add_default(a, t, "fallback_application_name", "oncewrap");
	add_default(a, t, "client_encoding", "UTF8");
	add_default(a, t, "keepalives_idle", "5");
	add_default(a, t, "keepalives_interval", "2");
	add_default(a, t, "keepalives_count", "3");
	add_default(a, t, "tcp_user_timeout", silence);
	add_argument(a, NULL, NULL);
	conn = PQconnectStartParams(a->keyword, a->value, 0);
	/* for explain_failure() */
	(void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
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

/* Of a line "FATAL:  3D000: ...": the SQLSTATE; NULL: it has none. */
static const char *
find_state(const char *line, size_t n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *const end = line + n;

	while ((line = memmem(line, (size_t)(end - line), ":  ", 3)) != NULL) {
		line += 3;
		if (strspn(line, digits) == 5 &&
		    strncmp(line + 5, ": ", 2) == 0)
			return line;
	}
	return NULL;
}

/* Whether a failure can be mended by an operator only: this user may not come
 * in, or there is no such database. */
static bool
state_refuses(const char *state)
{
	return strncmp(state, "28", 2) == 0 ||
	    strncmp(state, "3D000", 5) == 0 || strncmp(state, "42501", 5) == 0;
}

/*
 * Adds the message of a connection that failed.  libpq tells the SQLSTATE of
 * such a failure only there, in its most verbose form, so that is taken out,
 * with the line that names a place in the server's source.  Returns whether the
 * last failure was a refusal; libpq tries several addresses of a host.
 */
static bool
explain_failure(PGconn *conn, struct buf *why)
{
	static const char place[] = "LOCATION:  ";
	const char *line = PQerrorMessage(conn), *state;
	bool refused = PQconnectionNeedsPassword(conn), absent = false;
	size_t n;

	for (; *line != '\0'; line += n) {
		n = strcspn(line, "\n");
		n += line[n] == '\n';
		if (strncmp(line, place, sizeof(place) - 1) == 0)
			continue;
		if ((state = find_state(line, n)) == NULL) {
			(void)buf_add(why, line, n);
			continue;
		}
		refused = state_refuses(state);
		absent = strncmp(state, "3D000", 5) == 0;
		(void)buf_add(why, line, (size_t)(state - line));
		state += strlen("28P01: ");
		(void)buf_add(why, state, n - (size_t)(state - line));
	}
	if (absent)
		(void)buf_addf(why, "(make it: createdb -O %s %s)",
		    PQuser(conn), PQdb(conn));
	if (PQconnectionNeedsPassword(conn))
		(void)buf_addf(why,
		    "(write it into a file with mode 0600, as a line "
		    "%s:%s:%s:%s:PASSWORD, and name that file in PGPASSFILE)",
		    PQhost(conn), PQport(conn), PQdb(conn), PQuser(conn));
	return refused;
}

static enum rc
connect_to(const struct pg_target *t, int host, int64_t deadline, PGconn **out,
    bool *refused, struct buf *why)
{
	PGconn *conn = start_connect(t, host);
	enum rc rc = conn != NULL ? finish_connect(conn, deadline) : RC_NOMEM;

	*refused = false;
	if (rc == RC_OK) {
		*out = conn;
		return RC_OK;
	}
	if (why->len > 0)
		(void)buf_adds(why, "; ");
	if (rc == RC_TIMEOUT)
		(void)buf_addf(why, "no answer in time from %s:%s",
		    PQhost(conn), PQport(conn));
	else if (conn != NULL)
		*refused = explain_failure(conn, why);
	PQfinish(conn);
	return rc;
}

/* A host that is silent uses up its part of the time only. */
enum rc
pg_connect(struct pg_target *t, int64_t deadline, PGconn **out, bool *refused,
    char *message, size_t size)
{
	const int n = t->nhosts > 0 ? t->nhosts : 1;
	const int first = atomic_load(&t->first);
	int refusals = 0, host;
	enum rc rc = RC_IO;
	struct buf why;
	int64_t now;

	*out = NULL;
	buf_init(&why, PG_MESSAGE_MAX - 1);
	for (int i = 0; i < n && rc != RC_OK; i++) {
		now = clock_mono();
		host = (first + i) % n;
		rc = connect_to(t, host, now + (deadline - now) / (n - i), out,
		    refused, &why);
		refusals += *refused;
		if (rc == RC_OK)
			atomic_store(&t->first, host);
	}
	*refused = refusals == n;
	pg_target_scrub(t, why.data, message, size);
	buf_free(&why);
	return rc;
}
