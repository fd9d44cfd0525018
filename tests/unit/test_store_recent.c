/*
 * store: keys that are recent, and in no index of owners or of age, are found
 * like all others.
 */
#include "config.h"

#include "metrics.h"
#include "store_operator.h"
#include "store_fixture.h"

#define MANY 300 /* more keys than are recent */

static enum decision
within_limit(const char *key, unsigned max_active)
{
	struct store_reservation r = reservation(key);

	r.max_active = max_active;
	return decision_as(&r);
}

static int
running(void)
{
	struct store_browse b = { .filter.state = RECORD_IN_PROGRESS };
	struct metrics_gauges g;
	struct store_found found;

	assert_ok(store_browse(store, &b, &found));
	assert_ok(store_gauges(store, &g));
	assert_int_equal(found.count, g.value[METRICS_KEYS_IN_PROGRESS]);
	return (int)found.count;
}

static int
expire_all(void)
{
	int n, sum = 0;

	while ((n = expire(STORE_EXPIRE_MAX)) > 0)
		sum += n;
	return sum;
}

STORE_TEST(few_keys_are_recent)
{
	complete_many("a", 10, HOUR);
	assert_int_equal(unlisted(), 10);
	complete_many("b", MANY, HOUR);
	assert_in_range(unlisted(), 64, 128);
	assert_int_equal(unlisted_and_not_recent(), 0);
	assert_int_equal(doctor_says("rows"), '+');
}

STORE_TEST(lease_is_found_when_its_key_is_no_longer_recent)
{
	struct store_lease old = reserve("old"), lease;

	complete_many("k", MANY, HOUR);
	reserve("new");
	assert_int_equal(running(), 2);
	assert_int_equal(within_limit("x", 2), DECIDE_CROWDED);
	settle(&old, RECORD_FAILED_RETRYABLE);
	assert_int_equal(running(), 1);
	assert_int_equal(within_limit("x", 1), DECIDE_CROWDED);
	lease = reserve("old"); /* again, with its old number */
	assert_int_equal(lease.id, old.id);
	assert_int_equal(running(), 2);
	assert_int_equal(within_limit("x", 2), DECIDE_CROWDED);
	lose_owner(NULL);
	assert_int_equal(sweep(store), 2);
	assert_int_equal(state_of("old"), RECORD_UNKNOWN);
	assert_int_equal(state_of("new"), RECORD_UNKNOWN);
	assert_int_equal(running(), 0);
}

STORE_TEST(leases_of_several_dead_owners_are_found)
{
	reserve("a");
	reserve("b");
	complete_many("k", MANY, HOUR);
	reserve("c");
	lose_owner("a");
	lose_owner("c");
	set_value("b", K_OWNER, DEAD_OWNER + 1);
	assert_int_equal(sweep(store), 3);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(running(), 0);
}

/* Oldest first, whichever of them are recent. */
STORE_TEST(keys_expire_in_the_order_of_their_age)
{
	struct store_change changes[2];
	struct store_lease lease = reserve("late");
	int n;

	complete_many("k", MANY, HOUR);
	settle_for(&lease, RECORD_COMPLETED, 0);
	lease = reserve("first");
	settle_for(&lease, RECORD_COMPLETED, 0);
	set_value("first", K_EXPIRES_AT, 5);
	set_value("late", K_EXPIRES_AT, 6);
	set_value("k299", K_EXPIRES_AT, 7);
	set_value("k1", K_EXPIRES_AT, 8);
	for (int i = 0; i < 2; i++) {
		assert_ok(store_expire(store, 2, changes, &n));
		assert_int_equal(n, 2);
		assert_string_equal(changes[0].key, i == 0 ? "first" : "k299");
		assert_string_equal(changes[1].key, i == 0 ? "late" : "k1");
		store_changes_free(changes, n);
	}
	assert_int_equal(expire_all(), 0);
	assert_int_equal(count_of(KEYS), MANY - 2);
}

STORE_TEST(all_keys_past_their_retention_are_deleted)
{
	complete_many("k", MANY, 0);
	assert_int_equal(expire_all(), MANY);
	complete_many("k", 3, 0); /* recent, and older ones are not there */
	assert_int_equal(expire_all(), 3);
	assert_int_equal(count_of(KEYS), 0);
}

STORE_TEST(recent_keys_are_counted_with_the_others)
{
	struct metrics_gauges g;
	bool done = false;

	complete_many("k", MANY, HOUR);
	while (!done)
		assert_ok(store_tally(store, &done));
	assert_ok(store_gauges(store, &g));
	assert_int_equal(g.value[METRICS_KEYS_COMPLETED], MANY);
}

/* Whatever a foreign program writes there, new keys are found. */
STORE_TEST(planted_marks_hide_no_new_key)
{
	static const int64_t marks[] = { INT64_MIN, 0, INT64_C(70368744177664),
		INT64_MAX };
	char key[16];

	for (size_t i = 0; i < COUNT(marks); i++) {
		set_value(NULL, K_LISTED, 1);
		set_value(NULL, M_RECENT, marks[i]);
		snprintf(key, sizeof(key), "%zu", i);
		reserve(key);
		assert_int_equal(running(), 1);
		lose_owner(NULL);
		assert_int_equal(sweep(store), 1);
		complete_many(key, 2, 0);
		assert_int_equal(expire_all(), 2);
		assert_int_equal(doctor_says("rows"), '+');
	}
}

/* A number that leads far away: the keys before it are listed. */
STORE_TEST(planted_number_hides_no_key)
{
	reserve("old");
	complete_many("k", 3, 0);
	set_value(NULL, M_LAST_ID, INT64_C(35184372088832));
	reserve("new");
	assert_int_equal(running(), 2);
	assert_int_equal(expire_all(), 3);
	complete_many("n", MANY, 0);
	assert_int_equal(running(), 2);
	assert_int_equal(expire_all(), MANY);
	assert_int_equal(doctor_says("rows"), '+');
}

/* The mark is not counted from the lowest of all numbers. */
STORE_TEST(planted_lowest_number_moves_no_mark)
{
	struct store_lease lease = reserve("k");

	settle(&lease, RECORD_COMPLETED);
	set_value(NULL, M_LAST_ID, 1);
	set_value("k", K_ID, INT64_MIN);
	assert_int_equal(expire_all(), 0);
	assert_int_equal(value_of(NULL, M_RECENT), 0);
}

/* A foreign program inserted many rows, and there is no new key. */
STORE_TEST(foreign_rows_are_listed_by_and_by)
{
	struct store_lease lease = reserve("k");

	settle(&lease, RECORD_COMPLETED);
	pass_retention("k");
	copy_row("k", 9000);
	assert_int_equal(unlisted(), 9001);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(expire(1), 1);
		assert_int_equal(changed.id, 1 + i);
		if (i == 0)
			assert_int_equal(unlisted(), 9001 - 4096);
	}
	assert_in_range(unlisted(), 64, 128);
}

/* A foreign program took its key from the index: no sweep finds the lease, but
 * doctor reports it, and a request that meets it recovers it. */
STORE_TEST(hidden_lease_is_recovered_when_it_is_met)
{
	struct store_lease lease = reserve("k");
	struct store_change change;
	int n;

	complete_many("k", MANY, HOUR);
	lose_owner("k");
	clear_value("k", K_LISTED);
	assert_int_equal(sweep(store), 0);
	assert_int_equal(doctor_says("rows"), '-');
	assert_ok(store_recover_key(store, lease.id, DEAD_OWNER, &change, &n));
	assert_int_equal(n, 1);
	store_changes_free(&change, n);
	assert_int_equal(state_of("k"), RECORD_UNKNOWN);
}
