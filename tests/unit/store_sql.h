/*
 * The SQL of the store's tests: no file of theirs but this one, store_words.h
 * and store_kinds.h knows a table or a column.  The tests look at rows, and
 * change them behind the store's back, by the words of these three.
 *
 * Not so tests whose subject is SQL: of the schema and its statements
 * (test_schema, test_queries), of what handlers write (test_views, say.h), and
 * of each database's connections (test_db, test_pg, test_txn, test_txn_share).
 *
 * Included by store_fixture.h only.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

/* --- statements ---------------------------------------------------------- */

static UNUSED sqlite3 *
raw_open(const char *name)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	return db;
}

static UNUSED void
raw_run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

/* Begins a transaction that reads. */
static UNUSED void
raw_read(sqlite3 *db)
{
	raw_run(db, "BEGIN; SELECT count(*) FROM once_key");
}

static UNUSED void
raw(const char *sql)
{
	char out[256];
	sqlite3 *db;

	if (is_postgresql()) {
		psql(schema, sql, out, sizeof(out));
		return;
	}
	db = raw_open(file);
	raw_run(db, sql);
	sqlite3_close(db);
}

#define rawf(...) raw(textf(__VA_ARGS__))

/* The first value that a query gives, as text. */
static UNUSED void
raw_text(const char *sql, char *out, size_t size)
{
	sqlite3_stmt *s;
	sqlite3 *db;

	if (is_postgresql()) {
		psql(schema, sql, out, size);
		return;
	}
	db = raw_open(file);
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	snprintf(out, size, "%s",
	    sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0) != NULL
		? (const char *)sqlite3_column_text(s, 0)
		: "");
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static UNUSED int64_t
raw_number(const char *sql)
{
	char out[256];

	raw_text(sql, out, sizeof(out));
	return *out == 't' ? 1 : strtoll(out, NULL, 10);
}

#define raw_numberf(...) raw_number(textf(__VA_ARGS__))

/* --- rows ---------------------------------------------------------------- */

enum rows {
	KEYS,
	REQUESTS,
	PIECES, /* of large bodies */
	ANSWERS,
	UNNAMED, /* large bodies that no key has yet */
	REFUSED,
	EFFECTS,
	OWNERS,
	META,
	CLOCK
};

static const char *const row_tables[] = {
	[KEYS] = "once_key",
	[REQUESTS] = "once_request",
	[PIECES] = "once_piece",
	[ANSWERS] = "once_answer",
	[UNNAMED] = "once_unnamed",
	[REFUSED] = "once_refused",
	[EFFECTS] = "once_effect",
	[OWNERS] = "once_owner",
	[META] = "once_meta",
	[CLOCK] = "once_clock",
};

static UNUSED int64_t
count_of(enum rows rows)
{
	return raw_numberf("SELECT count(*) FROM %s", row_tables[rows]);
}

static UNUSED void
delete_all(enum rows rows)
{
	rawf("DELETE FROM %s", row_tables[rows]);
}

static UNUSED int64_t
count_keys(enum record_state state)
{
	return raw_numberf("SELECT count(*) FROM once_key WHERE state = '%s'",
	    record_state_name(state));
}

static UNUSED int64_t
count_effects(enum effect_state state)
{
	return raw_numberf(
	    "SELECT count(*) FROM once_effect WHERE state = '%s'",
	    effect_state_name(state));
}

/* --- values -------------------------------------------------------------- */

#define COLUMNS(X)                                        \
	X(K_ACCEPTED, KEYS, "accepted")                   \
	X(K_ATTEMPT, KEYS, "attempt")                     \
	X(K_ATTEMPT_LOCK, KEYS, "attempt_lock")           \
	X(K_BODY, KEYS, "body")                           \
	X(K_BODY_LENGTH, KEYS, "body_length")             \
	X(K_BODY_STORED, KEYS, "length(body)")            \
	X(K_CREATED_AT, KEYS, "created_at")               \
	X(K_DOWNSTREAM, KEYS, "downstream")               \
	X(K_EXPIRED_RETENTION, KEYS, "expired_retention") \
	X(K_EXPIRES_AT, KEYS, "expires_at")               \
	X(K_FINGERPRINT, KEYS, "fingerprint")             \
	X(K_FINGERPRINT_SPEC, KEYS, "fingerprint_spec")   \
	X(K_HEADERS, KEYS, "headers")                     \
	X(K_ID, KEYS, "id")                               \
	X(K_IDENTITY, KEYS, "identity")                   \
	X(K_REPLAYABLE, KEYS, "replayable")               \
	X(K_KEY, KEYS, "key")                             \
	X(K_KIND, KEYS, "kind")                           \
	X(K_LISTED, KEYS, "listed")                       \
	X(K_LOCKED_UNTIL, KEYS, "locked_until")           \
	X(K_LOCK_FILE, KEYS, "lock_file")                 \
	X(K_OWNER, KEYS, "owner")                         \
	X(K_PATH, KEYS, "path")                           \
	X(K_QUEUED_AT, KEYS, "queued_at")                 \
	X(K_REASON, KEYS, "reason")                       \
	X(K_RECONCILE_AFTER, KEYS, "reconcile_after")     \
	X(K_RECONCILE_TRIES, KEYS, "reconcile_attempts")  \
	X(K_RECOVERY_POINT, KEYS, "recovery_point")       \
	X(K_RESOURCE, KEYS, "resource")                   \
	X(K_RESPONSE_VERSION, KEYS, "response_version")   \
	X(K_RETENTION, KEYS, "retention")                 \
	X(K_SCOPE, KEYS, "scope")                         \
	X(K_STATE, KEYS, "state")                         \
	X(K_STATUS, KEYS, "status")                       \
	X(K_TOKEN, KEYS, "token")                         \
	X(K_UPDATED_AT, KEYS, "updated_at")               \
	X(E_ATTEMPTS, EFFECTS, "attempts")                \
	X(E_KEY_ID, EFFECTS, "key_id")                    \
	X(E_NEXT_AT, EFFECTS, "next_at")                  \
	X(E_PAYLOAD, EFFECTS, "payload")                  \
	X(E_UPDATED_AT, EFFECTS, "updated_at")            \
	X(R_ATTEMPT, REFUSED, "attempt")                  \
	X(R_EXIT_STATUS, REFUSED, "exit_status")          \
	X(R_LENGTH, REFUSED, "length")                    \
	X(R_OUTPUT, REFUSED, "output")                    \
	X(R_SIGNAL, REFUSED, "signal")                    \
	X(O_BEAT_AT, OWNERS, "beat_at")                   \
	X(O_BOOT, OWNERS, "boot")                         \
	X(M_KEPT_BYTES, META, "kept_bytes")               \
	X(M_LAST_ID, META, "last_id")                     \
	X(M_RECENT, META, "recent")                       \
	X(C_LAST, CLOCK, "last")

#define COLUMN_ENUMERATOR(column, rows, name) column,
enum column { NO_COLUMN, COLUMNS(COLUMN_ENUMERATOR) };

static const struct {
	enum rows rows;
	const char *name;
} columns[] = {
#define COLUMN_NAME(column, rows, name) [column] = { rows, name },
	COLUMNS(COLUMN_NAME)
};

/* " WHERE key = ..."; nothing for all rows. */
static const char *
of_key(const char *key)
{
	return key != NULL ? textf(" WHERE key = '%s'", key) : "";
}

/* Gives a column a value, which is SQL, whatever the table's checks say.  Here
 * and below: a key of NULL means all rows. */
static UNUSED void
spoil(const char *key, enum column c, const char *value)
{
	rawf("%sUPDATE %s SET %s = %s%s",
	    is_postgresql() ? "" : "PRAGMA ignore_check_constraints = ON;",
	    row_tables[columns[c].rows], columns[c].name, value, of_key(key));
}

/* Some columns of a row that makes no sense. */
struct bad_value {
	enum column column;
	const char *value;
};

#define BAD_VALUES 3

static UNUSED void
spoil_all(const char *key, const struct bad_value bad[BAD_VALUES])
{
	for (int i = 0; i < BAD_VALUES && bad[i].value != NULL; i++)
		spoil(key, bad[i].column, bad[i].value);
}

/* The first of them, for a message. */
static UNUSED const char *
bad_text(const struct bad_value bad[BAD_VALUES])
{
	return textf("%s = %s", columns[bad->column].name, bad->value);
}

static UNUSED void
set_value(const char *key, enum column c, int64_t value)
{
	spoil(key, c, textf("%lld", (long long)value));
}

static UNUSED void
clear_value(const char *key, enum column c)
{
	spoil(key, c, "NULL");
}

static UNUSED void
add_to(const char *key, enum column c, int64_t by)
{
	rawf("UPDATE %s SET %s = %s + %lld%s", row_tables[columns[c].rows],
	    columns[c].name, columns[c].name, (long long)by, of_key(key));
}

/* Of several rows the largest; "" for NULL; it lives until the next call. */
static UNUSED const char *
text_of(const char *key, enum column c)
{
	static char text[256];

	raw_text(textf("SELECT max(%s) FROM %s%s", columns[c].name,
		     row_tables[columns[c].rows], of_key(key)),
	    text, sizeof(text));
	return text;
}

/* As a number, 0 for NULL. */
static UNUSED int64_t
value_of(const char *key, enum column c)
{
	return strtoll(text_of(key, c), NULL, 10);
}

/* The rows in which it is not NULL. */
static UNUSED int64_t
count_with(enum column c)
{
	return raw_numberf("SELECT count(%s) FROM %s", columns[c].name,
	    row_tables[columns[c].rows]);
}

#endif
