/*
 * store: record.c's table is asked of each change of state, as it is made.
 */
#include "config.h"

#include <stdatomic.h>

#include "record.h"
#include "store_fixture.h"

/* Which changes were asked for, [by an operator][from][to]; and the one that
 * the table does not allow this time. */
static atomic_bool asked[2][RECORD_NSTATES][RECORD_NSTATES];
static enum record_state no_from, no_to;

bool __real_record_may_change(
    enum record_state from, enum record_state to, bool by_operator);
bool __wrap_record_may_change(
    enum record_state from, enum record_state to, bool by_operator);

bool
__wrap_record_may_change(
    enum record_state from, enum record_state to, bool by_operator)
{
	atomic_store(&asked[by_operator][from][to], true);
	return (from != no_from || to != no_to) &&
	    __real_record_may_change(from, to, by_operator);
}

static int
setup_table(void **state)
{
	memset(asked, 0, sizeof(asked));
	no_from = no_to = RECORD_NONE;
	return setup(state);
}

static struct store_reservation
job(const char *key)
{
	struct store_reservation r = reservation(key);

	give_request(&r, NULL, 0);
	return r;
}

static enum rc
accept_fails(const char *key)
{
	struct store_reservation r = job(key);
	struct store_ticket ticket;
	struct record found;
	enum decision d;
	enum rc rc = store_accept(store, &r, 10, &ticket, &d, &found);

	record_free(&found);
	return rc;
}

static enum rc
start_fails(void)
{
	struct store_reservation r = job("");
	struct store_lease lease;

	return start_next(&r, &lease);
}

static enum rc
forget(const char *key)
{
	return store_forget(store, record_of(key)->id, RECORD_NONE);
}

/* By a reconciler, after that many tries, or by an operator. */
static void
resolve(const struct store_lease *lease, int tries, enum record_state to)
{
	struct store_outcome *s = outcome(to);

	snprintf(s->last_error, sizeof(s->last_error), "found out");
	assert_ok(resolve_with(lease->id, (struct store_tries){ 1, tries }, s));
}

static enum rc
reap(void)
{
	struct store_change changes[32];
	enum rc rc;
	int n;

	pass_retention(NULL);
	rc = store_expire(store, COUNT(changes), changes, &n);
	store_changes_free(changes, n);
	return rc;
}

/* --- each change --------------------------------------------------------- */

static void
forget_each(void)
{
	struct store_lease lease;

	assert_ok(accept_fails("p"));
	assert_ok(forget("p"));
	put("c", RECORD_COMPLETED);
	assert_ok(forget("c"));
	put("f", RECORD_FAILED_RETRYABLE);
	assert_ok(forget("f"));
	put("u", RECORD_UNKNOWN);
	assert_ok(forget("u"));
	lease = put("d", RECORD_UNKNOWN);
	resolve(&lease, 0, RECORD_DEAD_LETTER);
	assert_ok(forget("d"));
	put("e", RECORD_COMPLETED);
	leave_marker(NULL, INT64_C(1000000000000));
	assert_ok(reap());
	assert_int_equal(state_of("e"), RECORD_EXPIRED);
	assert_ok(forget("e"));
}

static void
find_out_each(void)
{
	static const enum record_state to[] = { RECORD_COMPLETED,
		RECORD_FAILED_RETRYABLE };
	struct store_lease lease;

	for (size_t i = 0; i < COUNT(to); i++) {
		lease = put(textf("u%zu", i), RECORD_UNKNOWN);
		resolve(&lease, 0, to[i]);
		lease = put(textf("d%zu", i), RECORD_UNKNOWN);
		resolve(&lease, 0, RECORD_DEAD_LETTER);
		resolve(&lease, -1, to[i]);
	}
}

static void
work_off_each(void)
{
	struct store_outcome *s;
	struct record old;

	assert_ok(accept_fails("job"));
	assert_ok(start_fails());
	assert_int_equal(state_of("job"), RECORD_IN_PROGRESS);
	assert_ok(accept_fails("old"));
	pass_retention("old");
	assert_ok(store_job_abandoned(store, &old));
	s = store_outcome_new(store);
	s->state = RECORD_COMPLETED;
	s->response.status = 408;
	assert_ok(abandon(old.id, s));
	record_free(&old);
}

static void
age_each(void)
{
	put("c", RECORD_COMPLETED);
	put("f", RECORD_FAILED_RETRYABLE);
	leave_marker(NULL, INT64_C(1000000000000));
	assert_ok(reap());
	assert_int_equal(state_of("f"), RECORD_EXPIRED);
	leave_marker(NULL, 0);
	put("c2", RECORD_COMPLETED);
	put("f2", RECORD_FAILED_RETRYABLE);
	assert_ok(reap());
	assert_int_equal(count_with(K_EXPIRES_AT), 0);
}

#define CASE(name) TEST_WITH(name, setup_table, teardown)

CASE(each_change_of_the_table_is_asked_when_it_is_made)
{
	int by, from, to;

	forget_each();
	find_out_each();
	work_off_each();
	put("again", RECORD_FAILED_RETRYABLE);
	reserve("again");
	age_each();
	for (by = 0; by < 2; by++)
		for (from = 0; from < RECORD_NSTATES; from++)
			for (to = 0; to < RECORD_NSTATES; to++)
				if (__real_record_may_change(
					(enum record_state)from,
					(enum record_state)to, by != 0) !=
				    atomic_load(&asked[by][from][to]))
					fail_msg("%s to %s, by an operator: %d",
					    record_state_name(
						(enum record_state)from),
					    record_state_name(
						(enum record_state)to),
					    by);
}

/* --- what it does not allow ---------------------------------------------- */

static void
deny(enum record_state from, enum record_state to)
{
	no_from = from;
	no_to = to;
}

CASE(a_change_that_the_table_does_not_allow_is_not_made)
{
	deny(RECORD_NONE, RECORD_IN_PROGRESS);
	assert_int_equal(reserve_fails("k"), RC_INVALID);
	assert_int_equal(state_of("k"), RECORD_NONE);

	deny(RECORD_NONE, RECORD_PENDING);
	assert_int_equal(accept_fails("job"), RC_INVALID);
	assert_int_equal(state_of("job"), RECORD_NONE);

	deny(RECORD_PENDING, RECORD_IN_PROGRESS);
	assert_ok(accept_fails("job"));
	assert_int_equal(start_fails(), RC_INVALID);
	assert_int_equal(state_of("job"), RECORD_PENDING);

	deny(RECORD_PENDING, RECORD_NONE);
	assert_int_equal(forget("job"), RC_INVALID);
	assert_int_equal(state_of("job"), RECORD_PENDING);
	assert_int_equal(count_of(REQUESTS), 1);

	put("f", RECORD_FAILED_RETRYABLE);
	deny(RECORD_FAILED_RETRYABLE, RECORD_IN_PROGRESS);
	assert_int_equal(reserve_fails("f"), RC_INVALID);
	deny(RECORD_FAILED_RETRYABLE, RECORD_NONE);
	pass_retention("f");
	assert_int_equal(reserve_fails("f"), RC_INVALID);
	assert_int_equal(reap(), RC_INVALID);
	assert_true(row_is("f", RECORD_FAILED_RETRYABLE));
}
