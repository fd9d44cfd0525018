/*
 * A handler that shares the database: a plain connection, and what it says
 * through the three views.  Included by tests only, after store_fixture.h.
 */
#ifndef SAY_H
#define SAY_H

#define CHECKPOINT \
	"INSERT INTO once_checkpoint(token, recovery_point) VALUES (?1, "
#define OUTBOX "INSERT INTO once_outbox(token, topic, payload) VALUES (?1, "
#define RESPONSE \
	"INSERT INTO once_response(token, status, headers, body) VALUES (?1, "

/* A handler with tables of its own in the same file. */
static UNUSED sqlite3 *
handler_open(void)
{
	sqlite3 *db = raw_open(file);

	raw_run(
	    db, "PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS sale(n)");
	return db;
}

/* NULL, or why not. */
static UNUSED const char *
try_say(sqlite3 *db, const char *token, const char *sql)
{
	static char message[200];
	sqlite3_stmt *s;
	int code;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_bind_parameter_count(s) > 0)
		sqlite3_bind_text(s, 1, token, -1, SQLITE_TRANSIENT);
	code = sqlite3_step(s);
	snprintf(message, sizeof(message), "%s", sqlite3_errmsg(db));
	sqlite3_finalize(s);
	return code == SQLITE_DONE ? NULL : message;
}

/* In a transaction of its own, with a sale; sql is what it says. */
static UNUSED void
say(sqlite3 *db, const struct store_lease *lease, const char *sql)
{
	const char *why;

	raw_run(db, "BEGIN IMMEDIATE; INSERT INTO sale VALUES (1)");
	why = try_say(db, token_of(lease), sql);
	if (why != NULL)
		fail_msg("%s: %s", sql, why);
	raw_run(db, "COMMIT");
}

/* That it is refused so, and that nothing of its transaction is left. */
static UNUSED void
refuses(sqlite3 *db, const char *token, const char *sql, const char *message)
{
	int64_t before = raw_number("SELECT total(n) FROM sale");
	const char *why;

	raw_run(db, "BEGIN IMMEDIATE; INSERT INTO sale VALUES (1)");
	why = try_say(db, token, sql);
	if (why == NULL || strcmp(why, message) != 0)
		fail_msg("%s: %s, not %s", sql, why != NULL ? why : "accepted",
		    message);
	if (!sqlite3_get_autocommit(db))
		fail_msg("%s: its transaction goes on", sql);
	assert_int_equal(raw_number("SELECT total(n) FROM sale"), before);
}

#endif
