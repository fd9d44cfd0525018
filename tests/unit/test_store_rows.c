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
	const char *name;
	struct bad_value damage;
} rows[] = {
	{ "a path without /", { K_PATH, "'payments'" } },
	{ "an empty path", { K_PATH, "''" } },
	{ "a NUL in the path", { K_PATH, "'/pay' || char(0) || 'ments'" } },
	{ "an empty key", { K_KEY, "''" } },
	{ "a NUL in the key", { K_KEY, "'bad' || char(0)" } },
	{ "a long key", { K_KEY, "hex(zeroblob(3000))" } },
	{ "a long scope", { K_SCOPE, "hex(zeroblob(9000))" } },
	{ "a negative retention", { K_RETENTION, "-1" } },
	{ "a retention that overflows",
	    { K_RETENTION, "9223372036854775807" } },
	{ "a negative attempt", { K_ATTEMPT, "-1" } },
	{ "an attempt that is no int", { K_ATTEMPT, "4294967297" } },
};

/* A path of a row that makes no sense. */
#define NO_PATH "'payments'"

/* A key past its reconcile_delay, in that state. */
static void
make(const char *key)
{
	struct store_reservation r = reservation(key);
	struct store_lease lease;

	r.reconcile_delay = 1;
	give_request(&r, NULL, 0);
	lease = reserve_as(&r);
	settle(&lease, RECORD_UNKNOWN);
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
	struct record r;

	for (size_t i = 0; i < COUNT(keys); i++) {
		delete_all(KEYS);
		put("older", RECORD_COMPLETED);
		put("newer", RECORD_COMPLETED);
		identity.key = keys[i];
		take_identity_of(keys[1 - i], keys[i]);
		assert_ok(store_find(store, &identity, &r));
		assert_int_equal(r.id, value_of(keys[i], K_ID));
		record_free(&r);
	}
}

STORE_TEST(doctor_names_a_key_with_the_number_of_another)
{
	put("good", RECORD_COMPLETED);
	put("bad", RECORD_COMPLETED);
	assert_int_equal(doctor_says("rows"), '+');
	add_to("bad", K_IDENTITY, 1);
	assert_doctor_names("once_key 2");
}

/* The index of identities is not unique. */
STORE_TEST(doctor_names_the_second_row_of_a_key)
{
	put("k", RECORD_COMPLETED);
	put("good", RECORD_COMPLETED);
	put("twin", RECORD_COMPLETED);
	assert_int_equal(doctor_says("rows"), '+');
	take_identity_of("twin", "k");
	spoil("twin", K_KEY, "'k'");
	assert_doctor_names("1 without sense, and skipped: once_key 3");
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
		delete_all(KEYS);
		make("bad");
		make("good");
		make_due();
		spoil("bad", rows[i].damage.column, rows[i].damage.value);
		if (store_due(store, 0, &due) != RC_OK)
			fail_msg("%s", rows[i].name);
		assert_string_equal(due.key, "good");
		record_free(&due);
		assert_doctor_names("once_key ");
	}
	assert_true(bad_rows() > 0);
}

/* A row, or the mark of the highest number, leaves no number for the next. */
STORE_TEST(a_planted_number_keeps_no_new_key_out)
{
	static const struct {
		const char *key;
		enum column column;
		int64_t value;
	} planted[] = {
		{ "x", K_ID, INT64_MAX },
		{ NULL, M_LAST_ID, INT64_MAX },
		{ "x", K_ID, INT64_C(35184372088831) },
		{ NULL, M_LAST_ID, INT64_C(70368744177664) },
	};

	for (size_t i = 0; i < COUNT(planted); i++) {
		store_close(store); /* else it notices */
		delete_all(KEYS);
		set_value(NULL, M_LAST_ID, 0);
		store = open_store();
		put("x", RECORD_COMPLETED);
		set_value(planted[i].key, planted[i].column, planted[i].value);
		for (int n = 0; n < 5; n++)
			put(textf("%zu.%d", i, n), RECORD_COMPLETED);
		if (i == 0)
			assert_doctor_names("9223372036854775807");
	}
}

STORE_TEST(a_bad_row_is_counted_once)
{
	struct record due;
	int64_t before;

	make("bad");
	set_value("bad", K_ID, 987654);
	set_value("bad", K_RECONCILE_AFTER, 1);
	spoil("bad", K_PATH, NO_PATH);
	before = bad_rows();
	assert_int_equal(store_due(store, 0, &due), RC_NOTFOUND);
	assert_int_equal(bad_rows(), before + 1);
	assert_int_equal(store_due(store, 0, &due), RC_NOTFOUND);
	assert_int_equal(bad_rows(), before + 1);
	assert_doctor_names("once_key 987654");
}

STORE_TEST(a_sweep_settles_what_is_beside_a_bad_one)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		delete_all(KEYS);
		reserve("bad");
		reserve("good");
		set_value(NULL, K_OWNER, DEAD_OWNER + (int)i);
		spoil("bad", rows[i].damage.column, rows[i].damage.value);
		if (sweep(store) != 1)
			fail_msg("%s", rows[i].name);
		assert_int_equal(state_of("good"), RECORD_UNKNOWN);
	}
}

STORE_TEST(a_sweep_gets_past_many_owners_with_bad_rows_only)
{
	const int bad = 3 * 64 + 1;

	reserve_many("bad", bad);
	spoil(NULL, K_PATH, NO_PATH);
	reserve_many("good", 6);
	set_range(K_OWNER, 0, bad - 1, 1, 1);
	set_range(K_OWNER, bad, bad + 5, 1000000, 1);
	assert_doctor_names("once_key ");
	assert_int_equal(recover_in(store, 4), 4);
	assert_int_equal(state_of("good3"), RECORD_UNKNOWN);
	assert_int_equal(state_of("good4"), RECORD_IN_PROGRESS);
	assert_int_equal(recover_in(store, 4), 2);
}

/* An outcome that could never be recorded would stop all new runs.  That of a
 * row that makes no sense is given up. */
STORE_TEST(a_planted_retention_holds_up_no_outcome)
{
	static const int64_t planted[] = { INT64_MAX, -INT64_MAX };
	const struct store_tries operator= { 1, -1 };
	int64_t id;

	for (size_t i = 0; i < COUNT(planted); i++) {
		delete_all(KEYS);
		make("a");
		make("b");
		set_value(NULL, K_RETENTION, planted[i]);
		id = value_of("a", K_ID);
		assert_int_equal(
		    resolve_with(id, operator, outcome(RECORD_COMPLETED)),
		    RC_LOST);
		id = value_of("b", K_ID);
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
	pass_retention(NULL);
	spoil("bad", K_PATH, NO_PATH);
	assert_ok(store_list(store, &all, &list));
	assert_ok(store_list_next(list, &row));
	assert_string_equal(row.key, "good");
	record_free(&row);
	assert_int_equal(store_list_next(list, &row), RC_NOTFOUND);
	store_list_free(list);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "good");
	assert_int_equal(count_of(KEYS), 1);
}

/* More bad rows than any transaction skips. */
STORE_TEST(a_crowd_of_bad_rows_keeps_no_key_from_being_reaped)
{
	put("bad", RECORD_COMPLETED);
	spoil("bad", K_PATH, NO_PATH);
	pass_retention("bad");
	copy_row("bad", 3500);
	complete_many("good", 5, 0);
	assert_int_equal(expire(2), 2);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 3);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 0);
	/* An operator mends one. */
	spoil("bad7", K_PATH, "'/payments'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "bad7");
}

/* It deletes none of them, so they cost nothing. */
STORE_TEST(effects_of_a_bad_row_keep_no_key_from_being_reaped)
{
	put("good", RECORD_COMPLETED);
	set_value("good", K_EXPIRES_AT, 2);
	put("bad", RECORD_COMPLETED);
	spoil("bad", K_PATH, NO_PATH);
	pass_retention("bad");
	add_delivered("bad", 1024);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	assert_string_equal(changed.key, "good");
}

/* One that is mended is found by the next call even after another call had
 * gone past it. */
STORE_TEST(a_bad_row_that_is_mended_is_reaped_at_once)
{
	put("bad", RECORD_COMPLETED);
	put("good", RECORD_COMPLETED);
	set_range(K_EXPIRES_AT, 0, 1, 1, 1);
	spoil("bad", K_PATH, NO_PATH);
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
	spoil("bad", K_PATH, "'/payments'");
	assert_int_equal(expire(STORE_EXPIRE_MAX), 1);
}

/* Other callers wait for each transaction of a sweep, so many bad rows of one
 * owner are skipped in several. */
STORE_TEST(a_sweep_takes_a_crowd_of_bad_rows_in_parts)
{
	int64_t commits;

	reserve("bad");
	spoil("bad", K_PATH, NO_PATH);
	lose_owner("bad");
	copy_row("bad", 3500);
	reserve("good");
	reserve("other");
	lose_owner("good");
	set_value("other", K_OWNER, DEAD_OWNER + 1);
	commits = batches();
	assert_int_equal(sweep(store), 2);
	assert_true(batches() >= commits + 4);
	assert_int_equal(state_of("good"), RECORD_UNKNOWN);
	assert_int_equal(state_of("other"), RECORD_UNKNOWN);
}

STORE_TEST(a_bad_row_that_is_asked_for_is_no_answer_and_never_runs)
{
	static const struct bad_value sets[][BAD_VALUES] = {
		{ { K_STATE, "'none'" } },
		{ { K_STATE, "'completed' || char(0)" } },
		{ { K_DOWNSTREAM, "x'0123'" } },
		{ { K_DOWNSTREAM, "zeroblob(17)" } },
		{ { K_FINGERPRINT, "x'00'" } },
		{ { K_FINGERPRINT, "zeroblob(33)" } },
		{ { K_FINGERPRINT_SPEC, "4711" } },
		{ { K_STATUS, "NULL" } },
		{ { K_STATUS, "99" } },
		{ { K_STATUS, "4294967496" } },
		{ { K_TOKEN, "'x'" } },
		{ { K_TOKEN, "'0123456789abcdef'" }, { K_OWNER, "1" } },
		{ { K_TOKEN, "'0123456789abcdef0123456789abcdef'" },
		    { K_STATE, "'failed_retryable'" }, { K_REPLAYABLE, "0" } },
		{ { K_STATE, "'in_progress'" } },
		{ { K_EXPIRES_AT, "-1" } },
		{ { K_EXPIRES_AT, "9223372036854775807" } },
		{ { K_ATTEMPT, "0" } },
		{ { K_RESOURCE, "'x'" } },
		{ { K_ACCEPTED, "1" }, { K_QUEUED_AT, "7" } },
		{ { K_RECOVERY_POINT, "hex(zeroblob(100))" } },
	};
	const struct store_identity who = { "alice", "/payments", "k" };
	struct store_inline_answer small;
	struct record r;

	for (size_t i = 0; i < COUNT(sets); i++) {
		delete_all(KEYS);
		put("k", RECORD_COMPLETED);
		spoil_all("k", sets[i]);
		store_inline_answer_init(&small);
		if (store_lookup(store, &who, &r, &small) == RC_OK)
			fail_msg("%s: looked up", bad_text(sets[i]));
		store_inline_answer_free(&small);
		record_free(&r);
		if (reserve_fails("k") != RC_CORRUPT)
			fail_msg("%s: reserved", bad_text(sets[i]));
		assert_doctor_names("once_key ");
		/* the others are not touched by that */
		put("sound", RECORD_COMPLETED);
	}
}

/* An answer of that length, after the damage: why it is not given; nor does it
 * come with its record. */
static enum rc
answer_after(const struct bad_value *damage, void (*lose)(void), size_t length)
{
	struct store_reservation rv = reservation("k");
	struct store_inline_answer small;
	struct store_lease lease;
	struct response r;
	struct record key;
	struct spool *body;
	enum rc rc;

	delete_all(KEYS);
	delete_all(PIECES);
	lease = put_answer("k", length);
	assert_true(answer_is(lease.id, length));
	if (lose != NULL)
		lose();
	else
		spoil_all("k", damage);
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

static void
lose_pieces(void)
{
	delete_all(PIECES);
}

STORE_TEST(an_answer_that_makes_no_sense_is_not_given)
{
	static const struct bad_value sets[][BAD_VALUES] = {
		{ { K_KIND, "9" } },
		{ { K_STATUS, "100" } },
		{ { K_REASON, "hex(zeroblob(100))" } },
		{ { K_BODY_LENGTH, "2" } },
		{ { K_BODY_LENGTH, "4999" } },
		{ { K_BODY_LENGTH, "-1" } },
		{ { K_BODY_LENGTH, "4294967299" } },
		{ { K_BODY, "x'0000'" } },
		{ { K_RESPONSE_VERSION, "2" },
		    { K_HEADERS, "CAST('a: b\nc' AS BLOB)" } },
		{ { K_HEADERS, "CAST('A: b' AS BLOB)" } },
		{ { K_HEADERS, "CAST('A: b' || char(10) AS BLOB)" } },
		{ { K_HEADERS, "CAST('A' || char(13, 10) AS BLOB)" } },
		{ { K_HEADERS, "CAST(':b' || char(13, 10) AS BLOB)" } },
		{ { K_HEADERS, "CAST('A: ' || char(0, 13, 10) AS BLOB)" } },
		{ { K_HEADERS,
		    "CAST('A: ' || char(13, 98, 13, 10) AS BLOB)" } },
		{ { K_HEADERS,
		    "CAST('A: b' || char(13, 10, 13, 10) AS BLOB)" } },
	};
	static const struct bad_value later[BAD_VALUES] = {
		{ K_RESPONSE_VERSION, "3" }
	};
	static const size_t lengths[] = { 3, 5000 };

	for (size_t i = 0; i < COUNT(sets) * COUNT(lengths); i++)
		if (answer_after(sets[i / COUNT(lengths)], NULL,
			lengths[i % COUNT(lengths)]) != RC_CORRUPT)
			fail_msg("%s", bad_text(sets[i / COUNT(lengths)]));
	assert_int_equal(answer_after(later, NULL, 5000), RC_VERSION);
	assert_int_equal(answer_after(NULL, lose_pieces, 5000), RC_CORRUPT);
	assert_int_equal(
	    answer_after(NULL, repeat_last_piece, 5000), RC_CORRUPT);
}
