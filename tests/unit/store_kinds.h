/*
 * What store_sql.h is for both kinds of store, for what only one of them has.
 *
 * Included by store_fixture.h only.
 */
#ifndef STORE_KINDS_H
#define STORE_KINDS_H

/* --- indexes, which only SQLite has -------------------------------------- */

/* The keys that the index of owners or of age may have. */
static UNUSED int64_t
unlisted(void)
{
	return count_of(KEYS) - count_with(K_LISTED);
}

/* The keys that no search would find. */
static UNUSED int64_t
unlisted_and_not_recent(void)
{
	return raw_number("SELECT count(*) FROM once_key WHERE listed IS NULL "
			  "AND id <= (SELECT recent FROM once_meta)");
}

/* The keys that end by age, counted by their index alone. */
static UNUSED int64_t
listed_by_age(void)
{
	return raw_number(
	    "SELECT count(*) FROM once_key INDEXED BY once_key_expiry "
	    "WHERE listed = 1 AND expires_at IS NOT NULL");
}

/* Without an index. */
static UNUSED int64_t
recent_keys(void)
{
	return raw_number("SELECT count(*) FROM once_key NOT INDEXED "
			  "WHERE id > (SELECT recent FROM once_meta)");
}

static UNUSED void
take_identity_of(const char *key, const char *other)
{
	spoil(key, K_IDENTITY,
	    textf("(SELECT identity FROM once_key WHERE key = '%s')", other));
}

static UNUSED void
drop_an_index(void)
{
	raw("DROP INDEX once_key_open");
}

/* An index has other columns than its entries. */
static UNUSED void
spoil_an_index(void)
{
	raw("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
	    "replace(sql, '(identity)', '(scope)') "
	    "WHERE name = 'once_key_identity'; PRAGMA schema_version = 99;");
}

static UNUSED void
replace_a_table_by_a_view(void)
{
	raw("ALTER TABLE once_fingerprint_spec RENAME TO planted;"
	    "CREATE VIEW once_fingerprint_spec AS SELECT * FROM planted;");
}

/* --- bodies, as only SQLite stores them ---------------------------------- */

static UNUSED int64_t
bodies_in_pieces(void)
{
	return raw_number(is_postgresql()
		? "SELECT count(DISTINCT number) FROM once_piece"
		: "SELECT count(DISTINCT id / 65536) FROM once_piece");
}

/* A request, of a key of that number. */
static UNUSED void
plant_request(int64_t id)
{
	rawf("INSERT INTO once_request VALUES (%lld, x'00', x'00', 1, 0)",
	    (long long)id);
}

static UNUSED void
plant_piece(int64_t body, int piece)
{
	rawf(is_postgresql()
		? "INSERT INTO once_piece VALUES (%lld, %d, '\\x00')"
		: "INSERT INTO once_piece VALUES (65536 * %lld + %d, "
		  "zeroblob(100))",
	    (long long)body, piece);
}

/* A process was storing a body of so many bytes. */
static UNUSED void
plant_staged(int64_t body, int64_t owner, int bytes)
{
	rawf("INSERT INTO once_unnamed VALUES (%lld, %lld, %d)",
	    (long long)body, (long long)owner, bytes);
}

static UNUSED void
plant_answer(int64_t id, int64_t body)
{
	rawf("INSERT INTO once_answer VALUES (%lld, %lld)", (long long)id,
	    (long long)body);
}

static UNUSED void
lose_last_piece(void)
{
	raw("DELETE FROM once_piece WHERE id = "
	    "(SELECT max(id) FROM once_piece)");
}

/* The bytes of all pieces in one: the first. */
static UNUSED void
join_pieces(void)
{
	raw("CREATE TABLE whole AS SELECT min(id) AS id, CAST(group_concat("
	    "CAST(body AS TEXT), '') AS BLOB) AS body "
	    "FROM (SELECT id, body FROM once_piece ORDER BY id);"
	    "DELETE FROM once_piece;"
	    "INSERT INTO once_piece SELECT id, body FROM whole;"
	    "DROP TABLE whole");
}

/* Before the last piece. */
static UNUSED void
plant_empty_piece(void)
{
	raw("UPDATE once_piece SET id = id + 1 "
	    "WHERE id = (SELECT max(id) FROM once_piece);"
	    "INSERT INTO once_piece SELECT max(id) - 1, x'' FROM once_piece");
}

/* The pieces of the only request, in its row. */
static UNUSED void
join_request(void)
{
	join_pieces();
	raw("UPDATE once_request SET body = (SELECT body FROM once_piece)");
}

/* One piece is too many. */
static UNUSED void
repeat_last_piece(void)
{
	raw("INSERT INTO once_piece(id, body) SELECT max(id) + 1, x'00' "
	    "FROM once_piece");
}

/* --- other processes, in PostgreSQL -------------------------------------- */

/* What another host does that has not seen the key's process move. */
static UNUSED void
suspect_owner(const char *key)
{
	rawf("UPDATE once_key SET state = 'unknown', late_token = token, "
	     "token = NULL, owner = NULL, locked_until = NULL "
	     "WHERE key = '%s' AND state = 'in_progress'",
	    key);
}

/* Another process completes the key with that status. */
static UNUSED void
complete_elsewhere(const char *key, int status)
{
	rawf("UPDATE once_key SET state = 'completed', token = NULL, "
	     "owner = NULL, locked_until = NULL, expires_at = 1, "
	     "replayable = true, status = %d WHERE key = '%s'",
	    status, key);
}

/* A process's row is one of another boot of this process's host. */
static UNUSED void
be_of_my_past(pid_t pid)
{
	rawf("UPDATE once_owner SET boot = 'another', host = (SELECT host FROM "
	     "once_owner WHERE pid = %d) WHERE pid = %d",
	    (int)getpid(), (int)pid);
}

/* The process that has leases. */
static UNUSED void
spoil_owner(enum column c, const char *value)
{
	rawf("UPDATE once_owner SET %s = %s WHERE id IN (SELECT owner FROM "
	     "once_key)",
	    columns[c].name, value);
}

static UNUSED int64_t
processes_connected(void)
{
	return raw_number("SELECT count(DISTINCT owner) FROM once_session");
}

static UNUSED int64_t
last_beat(void)
{
	return raw_number("SELECT max(beat) FROM once_owner");
}

/* Commits but those of beats. */
static UNUSED int64_t
commits(void)
{
	return raw_number("SELECT sum(seq) - (SELECT sum(beat) FROM "
			  "once_owner) FROM once_session");
}

#endif
