/*
 * rate: a burst, the refill, names apart from each other, a limit that
 * changes, and more names than there is room for.
 */
#include "config.h"

#include "cases.h"

#include "rate.h"

/* Any time will do. */
#define T INT64_C(1000000)

static struct rate *rate;

static int
make(UNUSED void **state)
{
	rate = rate_new();
	return rate == NULL;
}

static int
end(UNUSED void **state)
{
	rate_free(rate);
	return 0;
}

AROUND_EACH(make, end)

static void
take(int64_t caller, unsigned limit, int64_t now, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(rate_take(rate, caller, limit, now), 0);
}

TEST(tokens_come_back_one_by_one)
{
	take('a', 5, T, 5);
	assert_int_equal(rate_take(rate, 'a', 5, T), 200);
	assert_int_equal(rate_take(rate, 'a', 5, T + 1), 199);
	assert_int_equal(rate_take(rate, 'a', 5, T + 199), 1);
	take('a', 5, T + 200, 1);
	assert_int_equal(rate_take(rate, 'a', 5, T + 200), 200);
	take('a', 5, T + 800, 3);
	assert_int_equal(rate_take(rate, 'a', 5, T + 800), 200);
	/* however long ago, no more than a burst */
	take('a', 5, T + 10000000, 5);
	assert_int_equal(rate_take(rate, 'a', 5, T + 10000000), 200);
}

/* Refused ones take nothing, and shares of a token are not lost. */
TEST(refused_one_costs_nothing)
{
	take('a', 3, T, 3);
	for (int64_t ms = 0; ms < 334; ms++)
		assert_int_equal(
		    rate_take(rate, 'a', 3, T + ms), (1000 - 3 * ms + 2) / 3);
	take('a', 3, T + 334, 1);
}

TEST(time_that_goes_back_gives_nothing)
{
	take('a', 1, T, 1);
	assert_int_equal(rate_take(rate, 'a', 1, T - 5000), 1000);
	assert_int_equal(rate_take(rate, 'a', 1, T + 1), 999);
}

TEST(callers_have_buckets_of_their_own)
{
	take('a', 1, T, 1);
	assert_int_not_equal(rate_take(rate, 'a', 1, T), 0);
	assert_int_equal(rate_take(rate, 'b', 1, T), 0);
	assert_int_not_equal(rate_take(rate, 'b', 1, T), 0);
}

TEST(smaller_limit_holds_at_once)
{
	take('a', 1000000, T, 10);
	take('a', 2, T + 1, 2);
	assert_int_equal(rate_take(rate, 'a', 2, T + 1), 500);
}

/* Those of the last second are remembered, as long as there is room. */
TEST(many_callers_forget_the_oldest_only)
{
	int64_t caller[20000];
	int forgotten = 0;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		caller[i] = (int64_t)random() << 31 | random();
		take(caller[i], 1, T + i / 100, 1);
	}
	for (int i = 19000; i < 20000; i++)
		forgotten += rate_take(rate, caller[i], 1, T + 200) == 0;
	/* 4096 places in sets of 8 for the last 1000 */
	assert_in_range(forgotten, 0, 20);
}

static int
begin_group(UNUSED void **state)
{
	rate_free(NULL);
	return 0;
}

GROUP(begin_group, NULL)
