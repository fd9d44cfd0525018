/*
 * store: the beginning of an answer that was not accepted, from the end of its
 * attempt until a later attempt ends or the key is deleted.
 */
#include "config.h"

#include "store_fixture.h"

/* Finishes with the first n bytes of byte_at() as what was refused. */
static void
refuse(const struct store_lease *lease, enum record_state state,
    int exit_status, int signal, size_t n)
{
	struct store_outcome *o = outcome(state);

	if (n > 0)
		give_body(o, n);
	o->refused.is = true;
	o->refused.exit_status = exit_status;
	o->refused.signal = signal;
	o->refused.bytes = o->response.body;
	o->refused.length = n;
	assert_ok(finish(lease, o));
}

/* Whether that is what is kept of the key. */
static bool
is_kept(int64_t id, int attempt, int exit_status, int signal, size_t length)
{
	const size_t n = length < LIMIT_REFUSED ? length : LIMIT_REFUSED;
	struct store_output o;
	bool same;

	if (store_output(store, id, &o) != RC_OK)
		return false;
	same = o.attempt == attempt && o.exit_status == exit_status &&
	    o.signal == signal && o.length == (int64_t)length &&
	    o.bytes.len == n && are_bytes(o.bytes.data, n);
	store_output_free(&o);
	return same;
}

static enum rc
output_of(int64_t id)
{
	struct store_output o;
	enum rc rc = store_output(store, id, &o);

	if (rc == RC_OK)
		store_output_free(&o);
	return rc;
}

STORE_TEST(any_length_and_end)
{
	static const struct {
		const char *key;
		enum record_state state;
		int exit_status, signal;
		size_t length;
	} rows[] = {
		{ "no output", RECORD_UNKNOWN, 0, 0, 0 },
		{ "a byte", RECORD_UNKNOWN, 255, 0, 1 },
		{ "released", RECORD_FAILED_RETRYABLE, 75, 0, 100 },
		{ "signal", RECORD_UNKNOWN, -1, 11, LIMIT_REFUSED - 1 },
		{ "ended", RECORD_UNKNOWN, -1, 0, LIMIT_REFUSED },
		{ "more", RECORD_UNKNOWN, 0, 0, LIMIT_REFUSED + 1 },
		{ "a lot", RECORD_UNKNOWN, 0, 0, 1000000 },
	};
	int64_t id[COUNT(rows)];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct store_lease lease = reserve(rows[i].key);

		id[i] = lease.id;
		assert_int_equal(output_of(lease.id), RC_NOTFOUND);
		refuse(&lease, rows[i].state, rows[i].exit_status,
		    rows[i].signal, rows[i].length);
		assert_int_equal(state_of(rows[i].key), rows[i].state);
	}
	reopen();
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(is_kept(id[i], 1, rows[i].exit_status,
		    rows[i].signal, rows[i].length));
}

STORE_TEST(an_attempt_without_its_lease_stores_none)
{
	struct store_lease lease = reserve("k"), stale = lease;
	struct store_outcome *o = outcome(RECORD_UNKNOWN);

	settle(&lease, RECORD_UNKNOWN);
	memset(stale.token, 'a', sizeof(stale.token) - 1);
	o->refused.is = true;
	assert_int_equal(finish(&stale, o), RC_LOST);
	assert_int_equal(output_of(lease.id), RC_NOTFOUND);
}

STORE_TEST(it_outlives_the_resolution_and_goes_with_the_key)
{
	struct store_lease lease = reserve("k");

	refuse(&lease, RECORD_UNKNOWN, 1, 0, 30);
	assert_ok(resolve_with(lease.id, (struct store_tries){ 1, -1 },
	    outcome(RECORD_COMPLETED)));
	assert_true(is_kept(lease.id, 1, 1, 0, 30));
	forget_key(lease.id);
	assert_int_equal(count_of(REFUSED), 0);
}

STORE_TEST(a_row_that_makes_no_sense_is_refused)
{
	static const struct bad_value planted[][BAD_VALUES] = {
		{ { R_ATTEMPT, "-1" } },
		{ { R_SIGNAL, "-1" } },
		{ { R_EXIT_STATUS, "-2" } },
		{ { R_EXIT_STATUS, "99999999999" } },
		{ { R_LENGTH, "-1" } },
		{ { R_LENGTH, "5" } },
		{ { R_OUTPUT, "zeroblob(5000)" }, { R_LENGTH, "5000" } },
	};
	static const struct bad_value sound[][BAD_VALUES] = {
		{ { R_ATTEMPT, "1" }, { R_SIGNAL, "0" } },
		{ { R_EXIT_STATUS, "1" }, { R_LENGTH, "30" },
		    { R_OUTPUT, "zeroblob(30)" } },
	};
	struct store_lease lease = reserve("k");

	refuse(&lease, RECORD_UNKNOWN, 1, 0, 30);
	for (size_t i = 0; i < COUNT(planted); i++) {
		spoil_all(NULL, planted[i]);
		assert_int_equal(output_of(lease.id), RC_CORRUPT);
		spoil_all(NULL, sound[0]);
		spoil_all(NULL, sound[1]);
		assert_ok(output_of(lease.id));
	}
}

/* An answer that was accepted, of a program that wrote to stderr; and of one
 * that did not. */
STORE_TEST(what_was_written_to_stderr_is_kept)
{
	struct store_lease lease = reserve("k");
	struct store_outcome *o = outcome(RECORD_FAILED_RETRYABLE);
	struct store_output got;

	assert_ok(buf_adds(&o->errors, "no route\n"));
	assert_ok(finish(&lease, o));
	assert_ok(store_output(store, lease.id, &got));
	assert_false(got.refused);
	assert_int_equal(got.attempt, 1);
	assert_string_equal(got.errors.data, "no route\n");
	assert_int_equal(got.bytes.len, 0);
	store_output_free(&got);

	lease = reserve("k");
	o = outcome(RECORD_COMPLETED);
	assert_ok(buf_adds(&o->errors, "paid\n"));
	assert_ok(finish(&lease, o));
	assert_ok(store_output(store, lease.id, &got));
	assert_string_equal(got.errors.data, "paid\n");
	assert_int_equal(got.attempt, 2);
	store_output_free(&got);

	lease = put("quiet", RECORD_COMPLETED);
	assert_int_equal(store_output(store, lease.id, &got), RC_NOTFOUND);
}
