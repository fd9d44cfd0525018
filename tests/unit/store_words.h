/*
 * What tests say of keys, requests and effects in their rows, for both kinds of
 * store: see store_sql.h.
 *
 * Included by store_fixture.h only.
 */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H

/* --- keys ---------------------------------------------------------------- */

static const char *
and_key(const char *key)
{
	return key != NULL ? textf(" AND key = '%s'", key) : "";
}

/* The key, or all, that end by age do so now. */
static UNUSED void
pass_retention(const char *key)
{
	rawf(
	    "UPDATE once_key SET expires_at = 1 WHERE expires_at IS NOT NULL%s",
	    and_key(key));
}

/* No process has this number. */
#define DEAD_OWNER 4711

/* The leases are a dead process's. */
static UNUSED void
lose_owner(const char *key)
{
	rawf("UPDATE once_key SET owner = %d WHERE owner IS NOT NULL%s",
	    DEAD_OWNER, and_key(key));
}

/* Of a key without a lease; nothing reconciles it. */
static UNUSED void
set_state(const char *key, enum record_state state)
{
	rawf("UPDATE once_key SET state = '%s', reconcile_after = NULL%s",
	    record_state_name(state), of_key(key));
}

/* Whether the key's row is in that state; RECORD_NONE: there is none. */
static UNUSED bool
row_is(const char *key, enum record_state state)
{
	if (state == RECORD_NONE)
		return raw_numberf("SELECT count(*) FROM once_key WHERE "
				   "key = '%s'",
			   key) == 0;
	return raw_numberf("SELECT count(*) FROM once_key WHERE key = '%s' "
			   "AND state = '%s'",
		   key, record_state_name(state)) == 1;
}

/* The keys that a reconciler waits for, in the order of their numbers. */
static UNUSED void
make_due(void)
{
	raw("UPDATE once_key SET reconcile_after = id "
	    "WHERE reconcile_after IS NOT NULL");
}

/* Past its retention, a marker stays of the key for that long; 0: none does. */
static UNUSED void
leave_marker(const char *key, int64_t retention)
{
	set_value(key, K_EXPIRED_RETENTION, retention);
}

static UNUSED void
delete_all_but(enum record_state state)
{
	rawf("DELETE FROM once_key WHERE state <> '%s'",
	    record_state_name(state));
}

/* Fields behind those of a stored response. */
static UNUSED void
append_headers(const char *text)
{
	rawf("UPDATE once_key SET headers = CAST(headers || char(10) || '%s' "
	     "AS BLOB)",
	    text);
}

/* The names of a row's key, "" if there is no such row. */
static UNUSED const struct store_identity *
owner_of(int64_t id)
{
	static char text[800];
	static struct store_identity who;
	char sql[300], *path, *key;

	snprintf(sql, sizeof(sql),
	    is_postgresql()
		? "SELECT convert_from(scope, 'UTF8'), convert_from(path, "
		  "'UTF8'), convert_from(key, 'UTF8') FROM once_key "
		  "WHERE id = %lld"
		: "SELECT scope || char(10) || path || char(10) || key "
		  "FROM once_key WHERE id = %lld",
	    (long long)id);
	raw_text(sql, text, sizeof(text) - 3);
	path = strchrnul(text, '\n');
	key = *path != '\0' ? strchrnul(path + 1, '\n') : path;
	who = (struct store_identity){ text, path + (*path != '\0'),
		key + (*key != '\0') };
	if (*key != '\0')
		key[1 + strcspn(key + 1, "\n")] = '\0';
	*path = *key = '\0';
	return &who;
}

/* --- requests ------------------------------------------------------------ */

/* As the store has counted them. */
static UNUSED int64_t
kept_bytes(void)
{
	return is_postgresql() ? raw_number("SELECT sum(bytes) FROM once_kept")
			       : value_of(NULL, M_KEPT_BYTES);
}

static UNUSED int64_t
bytes_of_requests(void)
{
	return raw_number("SELECT coalesce(sum(length(environment) + "
			  "length(body)), 0) FROM once_request");
}

static UNUSED void
forget_requests(void)
{
	delete_all(REQUESTS);
	if (is_postgresql())
		raw("UPDATE once_kept SET seq = seq + 1, bytes = 0");
	else
		set_value(NULL, M_KEPT_BYTES, 0);
}

/* --- many rows ----------------------------------------------------------- */

/* The keys from first to last, counted from 0 in the order of their numbers:
 * value, value + step, ... */
static UNUSED void
set_range(enum column c, int first, int last, int64_t value, int64_t step)
{
	rawf("UPDATE once_key SET %s = %lld + %lld * "
	     "(id - (SELECT min(id) FROM once_key)) "
	     "WHERE id - (SELECT min(id) FROM once_key) BETWEEN %d AND %d",
	    columns[c].name, (long long)(value - step * first), (long long)step,
	    first, last);
}

/* That many copies of the row of a key, with higher numbers, in no index of
 * owners or of age.  Their keys have a number behind; only SQLite. */
static UNUSED void
copy_row(const char *key, int n)
{
	static const char rest[] =
	    "identity, path, scope, state, attempt, token, owner, "
	    "locked_until, fingerprint, fingerprint_spec, downstream, "
	    "resume, retention, created_at, updated_at, expires_at, "
	    "replayable, "
	    "status";

	rawf("PRAGMA ignore_check_constraints = ON;"
	     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	     "WHERE i < %d) INSERT INTO once_key(key, %s) "
	     "SELECT '%s' || i, %s FROM n, once_key WHERE key = '%s'",
	    n, rest, key, rest, key);
}

/* That many effects of the key, which are delivered. */
static UNUSED void
add_delivered(const char *key, int n)
{
	rawf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	     "WHERE i < %d) INSERT INTO once_effect(key_id, effect_key, scope, "
	     "path, key, topic, state, created_at, updated_at) SELECT id, %s, "
	     "scope, path, key, 'mail', 'delivered', 1, 1 FROM once_key, n%s",
	    n, is_postgresql() ? "gen_random_uuid()" : "printf('%032x', i)",
	    of_key(key));
}

/* --- effects ------------------------------------------------------------- */

/* None is left, and the next number is 1. */
static UNUSED void
forget_effects(void)
{
	delete_all(EFFECTS);
	raw(is_postgresql() ? "ALTER SEQUENCE once_effect_id RESTART"
			    : "DELETE FROM sqlite_sequence");
}

static UNUSED void
save_effects(void)
{
	raw("CREATE TABLE was AS SELECT * FROM once_effect");
}

static UNUSED void
restore_effects(void)
{
	delete_all(PIECES);
	delete_all(EFFECTS);
	raw("INSERT INTO once_effect SELECT * FROM was");
}

/* Effects in that state. */
static UNUSED void
spoil_effects(enum effect_state state, enum column c, const char *value)
{
	rawf("UPDATE once_effect SET %s = %s WHERE state = '%s'",
	    columns[c].name, value, effect_state_name(state));
}

/* Effects up to that number. */
static UNUSED void
spoil_effects_to(int64_t last, enum column c, const char *value)
{
	rawf("UPDATE once_effect SET %s = %s WHERE id <= %lld", columns[c].name,
	    value, (long long)last);
}

static UNUSED void
make_effects_due(void)
{
	raw("UPDATE once_effect SET next_at = 0 WHERE next_at > 0");
}

static UNUSED int64_t
pending_before(const struct effect *e)
{
	return raw_numberf(
	    "SELECT count(*) FROM once_effect WHERE key_id = %lld "
	    "AND state = 'pending' AND id < %lld",
	    (long long)e->key_id, (long long)e->id);
}

#define HAS_TURN "(next_at IS NOT NULL OR owner IS NOT NULL)"

/* The effect that has the turn; -1: none or several. */
static UNUSED int64_t
turn(void)
{
	return raw_number("SELECT CASE WHEN count(*) = 1 THEN min(id) ELSE -1 "
			  "END FROM once_effect WHERE " HAS_TURN);
}

/* Of each key that has pending ones, exactly one has the turn; and what has a
 * payload needs one. */
static UNUSED void
check_effects(void)
{
	/* The numbers of effects whose payload is in pieces. */
	const char *apart = is_postgresql()
	    ? "(SELECT number - 70368744177664 FROM once_piece)"
	    : "(SELECT id / 65536 - 70368744177664 FROM once_piece)";

	assert_int_equal(
	    raw_numberf("SELECT (SELECT count(*) FROM once_effect e WHERE "
			"state = 'pending' AND 1 <> (SELECT count(*) FROM "
			"once_effect f WHERE f.key_id = e.key_id AND "
			"f.state = 'pending' AND " HAS_TURN ")) + (SELECT "
			"count(*) FROM once_effect WHERE state <> 'pending' "
			"AND " HAS_TURN ") * 1000 + (SELECT count(*) FROM "
			"once_effect WHERE (state = 'delivered') = (payload IS "
			"NOT NULL OR id IN %s)) * 1000000",
		apart),
	    0);
}

static UNUSED int64_t
topics_like(const char *like)
{
	return raw_numberf(
	    "SELECT count(*) FROM once_topic WHERE name LIKE '%s'", like);
}

/* --- all ----------------------------------------------------------------- */

/* The keys and effects as a number, which any change changes. */
static UNUSED int64_t
content(void)
{
	return raw_number(
	    "SELECT coalesce((SELECT sum(length(printf('%s %s %d %s %s %d "
	    "%d %d %s', key, state, attempt, token, recovery_point, "
	    "updated_at, status, expires_at, hex(body)))) FROM once_key), 0) "
	    "+ (SELECT count(*) FROM once_effect) * 1000000");
}

#endif
