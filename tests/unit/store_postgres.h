/*
 * The store's tests on PostgreSQL: TEST_DATABASE is the URI of a database whose
 * role may create schemas.  Each test gets a schema of its own.  Included by
 * store_fixture.h only.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

/* A test that knows SQLite's files or statements ends here on PostgreSQL. */
static UNUSED bool
is_postgresql(void)
{
	const char *uri = getenv("TEST_DATABASE");

	return uri != NULL && *uri != '\0';
}

#define ONLY_SQLITE(why)                                         \
	do {                                                     \
		if (is_postgresql()) {                           \
			print_message("only SQLite: %s\n", why); \
			skip();                                  \
		}                                                \
	} while (0)

/* The same for all tests of a program. */
#define ALL_ONLY_SQLITE(why)                                     \
	do {                                                     \
		if (is_postgresql()) {                           \
			print_message("only SQLite: %s\n", why); \
			return 77;                               \
		}                                                \
	} while (0)

/* What the tests' statements for SQLite are called here. */
static const struct {
	const char *sqlite, *postgresql;
} dialect[] = {
	{ "(SELECT last FROM once_clock)",
	    "(SELECT (extract(epoch FROM now()) * 1000)::bigint)" },
	{ "SELECT kept_bytes FROM once_meta",
	    "SELECT sum(bytes) FROM once_kept" },
	{ "DISTINCT id / 65536) FROM once_piece",
	    "DISTINCT key_id) FROM once_piece" },
	{ "FROM once_body", "FROM once_piece" },
	{ "kept = 0", "kept = false" },
};

static UNUSED void
translate(const char *sql, char *out, size_t size)
{
	const char *end = out + size;
	size_t i;

	while (*sql != '\0' && out < end - 1) {
		for (i = 0; i < COUNT(dialect); i++)
			if (strncmp(sql, dialect[i].sqlite,
				strlen(dialect[i].sqlite)) == 0)
				break;
		if (i == COUNT(dialect)) {
			*out++ = *sql++;
			continue;
		}
		out += snprintf(
		    out, (size_t)(end - out), "%s", dialect[i].postgresql);
		sql += strlen(dialect[i].sqlite);
	}
	*out = '\0';
}

/* What psql says to a statement in that database. */
static UNUSED void
psql(const char *database, const char *sql, char *out, size_t size)
{
	int pipes[2], status;
	const size_t room = 2 * strlen(sql) + 256;
	char *text = malloc(room);
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_non_null(text);
	translate(sql, text, room);
	assert_int_equal(pipe(pipes), 0);
	if ((pid = fork()) == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execlp("psql", "psql", "-XAtq", "-F", "\n", "-v",
		    "ON_ERROR_STOP=1", "-d", database, "-c", text,
		    (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(pipes[0]);
	out[len] = '\0';
	free(text);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("psql: %s", sql);
}

/* Drops the schema of the test, and makes it again. */
static UNUSED void
new_schema(const char *name, bool again)
{
	char sql[160], out[8];

	snprintf(sql, sizeof(sql),
	    "SET client_min_messages = error; "
	    "DROP SCHEMA IF EXISTS %s CASCADE; %s%s",
	    name, again ? "CREATE SCHEMA " : "", again ? name : "");
	psql(getenv("TEST_DATABASE"), sql, out, sizeof(out));
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
