/*
 * The store's tests on PostgreSQL: TEST_DATABASE is the URI of a database whose
 * role may create schemas.  Each test gets a schema of its own.  Included by
 * store_fixture.h only.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include <fcntl.h>

static UNUSED bool
is_postgresql(void)
{
	const char *uri = getenv("TEST_DATABASE");

	return uri != NULL && *uri != '\0';
}

/* store_now() is behind a server's clock by the time that its answer took, at
 * most so long (ms). */
#define SKEW (is_postgresql() ? 10000 : 0)

/* A psql that stays, because a start takes longer than most statements. */
static struct {
	FILE *to, *from;
	pid_t pid, user; /* it, and the process that talks to it */
} session;

#define SESSION_END "-- end --\n"

static UNUSED void
session_start(void)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	session.user = getpid();
	if ((session.pid = fork()) == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execlp("psql", "psql", "-XAtq", "-F", "\n", "-v",
		    "ON_ERROR_STOP=1", "-d", getenv("TEST_DATABASE"),
		    (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	session.to = fdopen(to[1], "w");
	session.from = fdopen(from[0], "r");
	assert_non_null(session.to);
	assert_non_null(session.from);
}

/* Its exit status. */
static UNUSED int
session_end(void)
{
	int status = 0;

	fclose(session.to);
	fclose(session.from);
	waitpid(session.pid, &status, 0);
	session.user = 0;
	return WEXITSTATUS(status);
}

/* Copies what psql says to the statements.  False: it has ended. */
static UNUSED bool
session_say(const char *in, const char *text, char *out, size_t size)
{
	char line[1024] = "";
	size_t len = 0;

	/* A child has its parent's, which it must not use. */
	if (session.user != getpid())
		session_start();
	fprintf(session.to, "SET search_path = %s;\n%s\n;\n\\echo %s",
	    in != NULL ? in : "public", text, SESSION_END);
	fflush(session.to);
	out[0] = '\0';
	while (fgets(line, sizeof(line), session.from) != NULL &&
	    strcmp(line, SESSION_END) != 0) {
		snprintf(out + len, size - len, "%s", line);
		len += strlen(out + len);
	}
	return strcmp(line, SESSION_END) == 0;
}

/* What psql says to statements in that schema; NULL: in none of the test's.  If
 * the server was restarted, another psql is needed. */
static UNUSED void
psql(const char *in, const char *sql, char *out, size_t size)
{
	const int connection_lost = 2; /* psql(1) */

	if (!session_say(in, sql, out, size) &&
	    (session_end() != connection_lost ||
		!session_say(in, sql, out, size)))
		fail_msg("psql: %s", sql);
}

/* Drops the schema of the test, and makes it again. */
static UNUSED void
new_schema(const char *name, bool again)
{
	char sql[256], out[8];

	snprintf(sql, sizeof(sql),
	    "SET client_min_messages = error; "
	    "DROP SCHEMA IF EXISTS %s CASCADE; %s%s",
	    name, again ? "CREATE SCHEMA " : "", again ? name : "");
	psql(NULL, sql, out, sizeof(out));
}

/* The URI of a schema. */
static UNUSED void
schema_uri(const char *name, char *out, size_t size)
{
	const char *database = getenv("TEST_DATABASE");

	assert_true(
	    snprintf(out, size, "%s%coptions=-csearch_path%%3D%s", database,
		strchr(database, '?') != NULL ? '&' : '?', name) < (int)size);
}

#endif
