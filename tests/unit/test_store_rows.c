/*
 * Rows that make no sense: any program that may write the file may have made
 * them.  They end no process and hold up no other row.
 */
#include "config.h"

#include <inttypes.h>

#include "metrics.h"
#include "store_outbox.h"
#include "store_fixture.h"

static const struct {
	const char *name, *set;
} rows[] = {
	{ "a path without /", "path = 'payments'" },
	{ "an empty path", "path = ''" },
	{ "a NUL in the path", "path = '/pay' || char(0) || 'ments'" },
	{ "an empty key", "key = ''" },
	{ "a NUL in the key", "key = 'bad' || char(0)" },
	{ "a long key", "key = hex(zeroblob(3000))" },
	{ "a long scope", "scope = hex(zeroblob(9000))" },
	{ "a negative retention", "retention = -1" },
	{ "a retention that overflows", "retention = 9223372036854775807" },
	{ "a negative attempt", "attempt = -1" },
	{ "an attempt that is no int", "attempt = 4294967297" },
};

/* A key past its reconcile_delay, in that state. */
static void
make(const char *key)
{
	struct store_reservation r = reservation(key);
	struct store_lease lease;

	r.reconcile_delay = 1;
	r.environment = "A=b";
	r.environment_len = 4;
	lease = reserve_as(&r);
	settle(&lease, RECORD_UNKNOWN);
}

static void
spoil(const char *key, const char *set)
{
	char sql[300];
	sqlite3 *db = raw_open(file);

	snprintf(sql, sizeof(sql),
	    "PRAGMA ignore_check_constraints = ON;"
	    "UPDATE once_key SET %s WHERE key = '%s'",
	    set, key);
	raw_run(db, sql);
	sqlite3_close(db);
}

static void
assert_doctor_names(const char *what)
{
	char text[1000];

	assert_int_equal(doctor_tells("rows", NULL, text), '-');
	assert_non_null(strstr(text, what));
}

/* The index holds numbers, and two identities may have the same one. */
STORE_TEST(of_two_keys_with_one_number_each_is_found)
{
	static const char *const keys[] = { "older", "newer" };
	struct store_identity identity = { "alice", "/payments", NULL };
	char set[100];
	struct record r;

	for (size_t i = 0; i < COUNT(keys); i++) {
		raw("DELETE FROM once_key");
		put("older", RECORD_COMPLETED);
		put("newer", RECORD_COMPLETED);
		identity.key = keys[i];
		snprintf(set, sizeof(set),
		    "identity = (SELECT identity FROM once_key "
		    "WHERE key = '%s')",
		    keys[i]);
		spoil(keys[1 - i], set);
		assert_int_equal(store_find(store, &identity, &r), RC_OK);
		record_free(&r);
		snprintf(set, sizeof(set),
		    "SELECT key = '%s' FROM once_key WHERE id = %" PRId64,
		    keys[i], r.id);
		assert_int_equal(raw_number(set), 1);
	}
}

STORE_TEST(doctor_names_a_key_with_the_number_of_another)
{
	put("good", RECORD_COMPLETED);
	put("bad", RECORD_COMPLETED);
	assert_int_equal(doctor_says("rows"), '+');
	spoil("bad", "identity = identity + 1");
	assert_doctor_names("once_key 2");
}

/* The index of identities is not unique. */
STORE_TEST(doctor_names_the_second_row_of_a_key)
{
	put("k", RECORD_COMPLETED);
	put("good", RECORD_COMPLETED);
	put("twin", RECORD_COMPLETED);
	assert_int_equal(doctor_says("rows"), '+');
	spoil("twin",
	    "key = 'k', identity = (SELECT identity FROM once_key "
	    "WHERE key = 'k')");
	assert_doctor_names("1 makes no sense, and is skipped: once_key 3");
}

static int64_t
metric(const char *name)
{
	struct metrics_gauges none;
	struct buf text;
	const char *at;
	int64_t n;

	memset(&none, 0xff, sizeof(none));
	buf_init(&text, LIMIT_METRICS);
	assert_int_equal(metrics_text(&none, false, &text), RC_OK);
	at = strstr(text.data, name);
	assert_non_null(at);
	n = strtoll(at + strlen(name), NULL, 10);
	buf_free(&text);
	return n;
}

static int64_t
counted(void)
{
	return metric("\noncewrap_bad_rows_total ");
}

/* Transactions so far. */
static int64_t
batches(void)
{
	return metric("\noncewrap_commit_batch_count ");
}

STORE_TEST(a_key_that_is_to_be_reconciled_waits_for_no_bad_one)
{
	struct record due;

	for (size_t i = 0; i < COUNT(rows); i++) {
		raw("DELETE FROM once_key");
		make("bad");
		spoil("bad", "reconcile_after = 1");
		spoil("bad", rows[i].set);
		make("good");
		raw("UPDATE once_key SET reconcile_after = 2 "
		    "WHERE key = 'good'");
		if (store_due(store, 0, &due) != RC_OK)
			fail_msg("%s", rows[i].name);
		assert_string_equal(due.key, "good");
		record_free(&due);
		assert_doctor_names("once_key ");
	}
	assert_true(counted() > 0);
}

/* A row, or the mark of the highest number, leaves no number for the next. */
STORE_TEST(a_planted_number_keeps_no_new_key_out)
{
	static const char *const planted[] = {
		"UPDATE once_key SET id = 9223372036854775807 WHERE key = 'x'",
		"UPDATE once_meta SET last_id = 9223372036854775807",
		"UPDATE once_key SET id = 35184372088831 WHERE key = 'x'",
		"UPDATE once_meta SET last_id = 70368744177664",
	};
	char key[32];

	for (size_t i = 0; i < COUNT(planted); i++) {
		store_close(store); /* else it notices */
		raw("DELETE FROM once_key");
		raw("UPDATE once_meta SET last_id = 0");
		store = open_store();
		put("x", RECORD_COMPLETED);
		raw(planted[i]);
		for (int n = 0; n < 5; n++) {
			snprintf(key, sizeof(key), "%zu.%d", i, n);
			put(key, RECORD_COMPLETED);
		}
		if (i == 0)
			assert_doctor_names("9223372036854775807");
	}
}

STORE_TEST(a_bad_row_is_counted_once)
{
	struct record due;
	int64_t before;

	make("bad");
	raw("UPDATE once_key SET id = 987654, reconcile_after = 1, "
	    "path = 'payments'");
	before = counted();
	assert_int_equal(store_due(store, 0, &due), RC_NOTFOUND);
	assert_int_equal(counted(), before + 1);
	assert_int_equal(store_due(store, 0, &due), RC_NOTFOUND);
	assert_int_equal(counted(), before + 1);
	assert_doctor_names("once_key 987654");
}

STORE_TEST(a_sweep_settles_what_is_beside_a_bad_one)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		raw("DELETE FROM once_key");
		reserve("bad");
		reserve("good");
		rawf("UPDATE once_key SET owner = 4711 + %zu", i);
		spoil("bad", rows[i].set);
		if (sweep(store) != 1)
			fail_msg("%s", rows[i].name);
		assert_int_equal(state_of("good"), RECORD_UNKNOWN);
	}
}

STORE_TEST(a_sweep_gets_past_many_owners_with_bad_rows_only)
{
	struct store_change changes[4];
	char key[16];
	int i, n;

	for (i = 0; i < 3 * 64 + 1; i++) {
		snprintf(key, sizeof(key), "bad%d", i);
		reserve(key);
	}
	raw("UPDATE once_key SET owner = id, path = 'payments'");
	for (i = 0; i < 6; i++) {
		snprintf(key, sizeof(key), "good%d", i);
		reserve(key);
	}
	raw("UPDATE once_key SET owner = 1000000 + id WHERE path <> "
	    "'payments'");
	assert_doctor_names("once_key ");
	assert_int_equal(
	    store_recover(store, COUNT(changes), changes, &n), RC_OK);
	assert_int_equal(n, 4);
	store_changes_free(changes, n);
	assert_int_equal(state_of("good3"), RECORD_UNKNOWN);
	assert_int_equal(state_of("good4"), RECORD_IN_PROGRESS);
	assert_int_equal(
	    store_recover(store, COUNT(changes), changes, &n), RC_OK);
	assert_int_equal(n, 2);
	store_changes_free(changes, n);
}

/* An outcome that could never be recorded would stop all new runs.  That of a
 * row that makes no sense is given up. */
STORE_TEST(a_planted_retention_holds_up_no_outcome)
{
	static const char *const planted[] = {
		"retention = 9223372036854775807",
		"retention = -9223372036854775807",
	};
	const struct store_tries operator= { 1, -1 };
	int64_t id;

	for (size_t i = 0; i < COUNT(planted); i++) {
		raw("DELETE FROM once_key");
		make("a");
		make("b");
		spoil("a", planted[i]);
		spoil("b", planted[i]);
		id = raw_number("SELECT id FROM once_key WHERE key = 'a'");
		assert_int_equal(
		    resolve_with(id, operator, outcome(RECORD_COMPLETED)),
		    RC_LOST);
		id = raw_number("SELECT id FROM once_key WHERE key = 'b'");
		assert_int_equal(resolve_with(id, operator,
				     outcome(RECORD_FAILED_RETRYABLE)),
		    RC_LOST);
		reserve("new");
	}
}

STORE_TEST(reaping_and_lists_pass_by_bad_ones)
{
	struct store_filter all = { 0 };
	struct store_cursor *list;
	struct record row;

	put("bad", RECORD_COMPLETED);
	put("good", RECORD_COMPLETED);
	raw("UPDATE once_key SET expires_at = 1");
	spoil("bad", "path = 'payments'");
	assert_int_equal(store_list(store, &all, &list), RC_OK);
	assert_int_equal(store_list_next(list, &row), RC_OK);
	assert_string_equal(row.key, "good");
	record_free(&row);
	assert_int_equal(store_list_next(list, &row), RC_NOTFOUND);
	store_list_free(list);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "good");
	assert_int_equal(raw_number("SELECT count(*) FROM once_key"), 1);
}

/* That many copies of the bad row of that key, with numbers before others. */
static void
multiply(const char *key, int n)
{
	static const char columns[] =
	    "identity, path, scope, state, attempt, token, owner, "
	    "locked_until, "
	    "fingerprint, fingerprint_spec, downstream, on_crash, retention, "
	    "created_at, "
	    "updated_at, expires_at, kept, status";

	rawf("PRAGMA ignore_check_constraints = ON;"
	     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	     "WHERE i < %d) INSERT INTO once_key(key, %s) "
	     "SELECT '%s' || i, %s FROM n, once_key WHERE key = '%s'",
	    n, columns, key, columns, key);
}

/* More bad rows than any transaction skips. */
STORE_TEST(a_crowd_of_bad_rows_keeps_no_key_from_being_reaped)
{
	struct store_change changes[STORE_EXPIRE_MAX];
	char key[16];
	int n;

	put("bad", RECORD_COMPLETED);
	spoil("bad", "path = 'payments', expires_at = 1");
	multiply("bad", 3500);
	for (int i = 0; i < 5; i++) {
		snprintf(key, sizeof(key), "good%d", i);
		put(key, RECORD_COMPLETED);
	}
	raw("UPDATE once_key SET expires_at = 2 WHERE path <> 'payments'");
	assert_int_equal(expire(2), 2);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 3);
	assert_int_equal(
	    store_expire(store, STORE_EXPIRE_MAX, changes, &n), RC_OK);
	assert_int_equal(n, 0);
	/* An operator mends one. */
	raw("UPDATE once_key SET path = '/payments' WHERE key = 'bad7'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "bad7");
}

/* It deletes none of them, so they cost nothing. */
STORE_TEST(effects_of_a_bad_row_keep_no_key_from_being_reaped)
{
	put("good", RECORD_COMPLETED);
	raw("UPDATE once_key SET expires_at = 2");
	put("bad", RECORD_COMPLETED);
	spoil("bad", "path = 'payments', expires_at = 1");
	raw("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	    "WHERE i < 1024) INSERT INTO once_effect(key_id, effect_key, "
	    "scope, path, key, topic, state, created_at, updated_at) "
	    "SELECT id, printf('%032x', i), scope, path, key, 'mail', "
	    "'delivered', 1, 1 FROM n, once_key WHERE key = 'bad'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "good");
}

/* One that is mended is found by the next call even after another call had
 * gone past it. */
STORE_TEST(a_bad_row_that_is_mended_is_reaped_at_once)
{
	put("bad", RECORD_COMPLETED);
	put("good", RECORD_COMPLETED);
	raw("UPDATE once_key SET expires_at = id");
	spoil("bad", "path = 'payments'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	spoil("bad", "path = '/payments'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
}

/* Other callers wait for each transaction of a sweep, so many bad rows of one
 * owner are skipped in several. */
STORE_TEST(a_sweep_takes_a_crowd_of_bad_rows_in_parts)
{
	int64_t commits;

	reserve("bad");
	spoil("bad", "path = 'payments', owner = 4711");
	multiply("bad", 3500);
	reserve("good");
	reserve("other");
	raw("UPDATE once_key SET owner = 4711 WHERE key = 'good'");
	raw("UPDATE once_key SET owner = 4712 WHERE key = 'other'");
	commits = batches();
	assert_int_equal(sweep(store), 2);
	assert_true(batches() >= commits + 4);
	assert_int_equal(state_of("good"), RECORD_UNKNOWN);
	assert_int_equal(state_of("other"), RECORD_UNKNOWN);
}

STORE_TEST(a_bad_row_that_is_asked_for_is_no_answer_and_never_runs)
{
	static const char *const sets[] = {
		"state = 'none'",
		"state = 'completed' || char(0)",
		"downstream = x'0123'",
		"downstream = zeroblob(17)",
		"fingerprint = x'00'",
		"fingerprint = zeroblob(33)",
		"fingerprint_spec = 4711",
		"status = NULL",
		"status = 99",
		"status = 4294967496",
		"token = 'x'",
		"token = '0123456789abcdef', owner = 1",
		("token = '0123456789abcdef0123456789abcdef', "
		 "state = 'failed_retryable', kept = 0"),
		"state = 'in_progress'",
		"expires_at = -1",
		"expires_at = 9223372036854775807",
		"attempt = 0",
		"resource = 'x'",
		"accepted = 1, queued_at = 7",
		"recovery_point = hex(zeroblob(100))",
	};
	const struct store_identity who = { "alice", "/payments", "k" };
	struct store_inline_answer small;
	struct record r;

	for (size_t i = 0; i < COUNT(sets); i++) {
		raw("DELETE FROM once_key");
		put("k", RECORD_COMPLETED);
		spoil("k", sets[i]);
		store_inline_answer_init(&small);
		if (store_lookup(store, &who, &r, &small) == RC_OK)
			fail_msg("%s: looked up", sets[i]);
		store_inline_answer_free(&small);
		record_free(&r);
		if (reserve_fails("k") != RC_CORRUPT)
			fail_msg("%s: reserved", sets[i]);
		assert_doctor_names("once_key ");
		/* the others are not touched by that */
		put("sound", RECORD_COMPLETED);
	}
}

/* An answer of that length, after the statement: why it is not given; nor does
 * it come with its record. */
static enum rc
answer_after(const char *sql, size_t length)
{
	struct store_reservation rv = reservation("k");
	struct store_inline_answer small;
	struct store_lease lease;
	struct response r;
	struct record key;
	struct spool *body;
	enum rc rc;

	raw("DELETE FROM once_key; DELETE FROM once_piece");
	lease = put_answer("k", length);
	assert_true(answer_is(lease.id, length));
	rawf("PRAGMA ignore_check_constraints = ON; %s", sql);
	store_inline_answer_init(&small);
	(void)store_lookup(store, &rv.identity, &key, &small);
	assert_false(small.is);
	store_inline_answer_free(&small);
	record_free(&key);
	response_init(&r);
	rc = store_answer(store, owner_of(lease.id), lease.id, &r, &body);
	assert_null(body);
	assert_null(r.body);
	response_free(&r);
	return rc;
}

STORE_TEST(an_answer_that_makes_no_sense_is_not_given)
{
	static const char *const sets[] = { "kind = 9", "status = 100",
		"reason = hex(zeroblob(100))", "body_length = 2",
		"body_length = 4999", "body_length = -1",
		"body_length = 4294967299", "body = x'0000'",
		"response_version = 2, headers = CAST('a: b\nc' AS BLOB)",
		"headers = CAST('A: b' AS BLOB)",
		"headers = CAST('A: b' || char(10) AS BLOB)",
		"headers = CAST('A' || char(13, 10) AS BLOB)",
		"headers = CAST(':b' || char(13, 10) AS BLOB)",
		"headers = CAST('A: ' || char(0, 13, 10) AS BLOB)",
		"headers = CAST('A: ' || char(13, 98, 13, 10) AS BLOB)",
		"headers = CAST('A: b' || char(13, 10, 13, 10) AS BLOB)" };
	static const size_t lengths[] = { 3, 5000 };
	char sql[200];

	for (size_t i = 0; i < COUNT(sets) * COUNT(lengths); i++) {
		snprintf(sql, sizeof(sql), "UPDATE once_key SET %s",
		    sets[i / COUNT(lengths)]);
		if (answer_after(sql, lengths[i % COUNT(lengths)]) !=
		    RC_CORRUPT)
			fail_msg("%s", sql);
	}
	assert_int_equal(
	    answer_after("UPDATE once_key SET response_version = 3", 5000),
	    RC_VERSION);
	assert_int_equal(
	    answer_after("DELETE FROM once_piece", 5000), RC_CORRUPT);
	assert_int_equal(
	    answer_after(
		"INSERT INTO once_piece(id, body) SELECT id + 1, x'00' "
		"FROM once_piece",
		5000),
	    RC_CORRUPT);
}
