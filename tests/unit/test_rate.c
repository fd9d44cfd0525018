/*
 * rate: a burst, the refill, names apart from each other, a limit that
 * changes, more names than there is room for, and threads.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rate.h"

/* Any time will do. */
#define T INT64_C(1000000)

static struct rate *
make(void)
{
	struct rate *rate = rate_new();

	assert_non_null(rate);
	return rate;
}

static void
take(struct rate *rate, int64_t caller, unsigned limit, int64_t now, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(rate_take(rate, caller, limit, now), 0);
}

static void
burst_is_as_large_as_the_rate(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 5, T, 5);
	assert_int_equal(rate_take(rate, 'a', 5, T), 200);
	rate_free(rate);
}

static void
tokens_come_back_one_by_one(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 5, T, 5);
	assert_int_equal(rate_take(rate, 'a', 5, T + 1), 199);
	assert_int_equal(rate_take(rate, 'a', 5, T + 199), 1);
	take(rate, 'a', 5, T + 200, 1);
	assert_int_equal(rate_take(rate, 'a', 5, T + 200), 200);
	take(rate, 'a', 5, T + 800, 3);
	assert_int_equal(rate_take(rate, 'a', 5, T + 800), 200);
	/* however long ago, no more than a burst */
	take(rate, 'a', 5, T + 10000000, 5);
	assert_int_equal(rate_take(rate, 'a', 5, T + 10000000), 200);
	rate_free(rate);
}

/* Refused ones take nothing, and shares of a token are not lost. */
static void
refused_one_costs_nothing(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 3, T, 3);
	for (int64_t ms = 0; ms < 334; ms++)
		assert_int_equal(
		    rate_take(rate, 'a', 3, T + ms), (1000 - 3 * ms + 2) / 3);
	take(rate, 'a', 3, T + 334, 1);
	rate_free(rate);
}

static void
time_that_goes_back_gives_nothing(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 1, T, 1);
	assert_int_equal(rate_take(rate, 'a', 1, T - 5000), 1000);
	assert_int_equal(rate_take(rate, 'a', 1, T + 1), 999);
	rate_free(rate);
}

static void
callers_have_buckets_of_their_own(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 1, T, 1);
	assert_int_not_equal(rate_take(rate, 'a', 1, T), 0);
	assert_int_equal(rate_take(rate, 'b', 1, T), 0);
	assert_int_not_equal(rate_take(rate, 'b', 1, T), 0);
	rate_free(rate);
}

static void
smaller_limit_holds_at_once(void **state)
{
	struct rate *rate = make();

	(void)state;
	take(rate, 'a', 1000000, T, 10);
	take(rate, 'a', 2, T + 1, 2);
	assert_int_equal(rate_take(rate, 'a', 2, T + 1), 500);
	rate_free(rate);
}

/* Those of the last second are remembered, as long as there is room. */
static void
many_callers_forget_the_oldest_only(void **state)
{
	struct rate *rate = make();
	int64_t caller[20000];
	int forgotten = 0;

	(void)state;
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		caller[i] = (int64_t)random() << 31 | random();
		take(rate, caller[i], 1, T + i / 100, 1);
	}
	for (int i = 19000; i < 20000; i++)
		forgotten += rate_take(rate, caller[i], 1, T + 200) == 0;
	/* 4096 places in sets of 8 for the last 1000 */
	assert_in_range(forgotten, 0, 20);
	rate_free(rate);
}

static atomic_int taken;

static void *
taker(void *arg)
{
	for (int i = 0; i < 1000; i++)
		if (rate_take(arg, 'a', 500, T) == 0)
			atomic_fetch_add(&taken, 1);
	return NULL;
}

static void
threads_share_a_bucket(void **state)
{
	struct rate *rate = make();
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, taker, rate), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&taken), 500);
	rate_free(rate);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burst_is_as_large_as_the_rate),
		cmocka_unit_test(tokens_come_back_one_by_one),
		cmocka_unit_test(refused_one_costs_nothing),
		cmocka_unit_test(time_that_goes_back_gives_nothing),
		cmocka_unit_test(callers_have_buckets_of_their_own),
		cmocka_unit_test(smaller_limit_holds_at_once),
		cmocka_unit_test(many_callers_forget_the_oldest_only),
		cmocka_unit_test(threads_share_a_bucket),
	};

	rate_free(NULL);
	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
