/*
 * backoff: pauses double, are spread, and have an end.
 */
#include "config.h"

#include "cases.h"

#include "backoff.h"

#define HOUR  INT64_C(3600000)
#define DAY   (24 * HOUR)
#define LEAST 0
#define MOST  UINT32_MAX

static const struct row {
	const char *name;
	int64_t first;
	int failures;
	int64_t most;
	int64_t least_pause, most_pause;
} rows[] = {
	{ "the first failure", 1000, 1, HOUR, 1000, 1499 },
	{ "the second", 1000, 2, HOUR, 2000, 2999 },
	{ "the eighth", 1000, 8, HOUR, 128000, 191999 },
	{ "none yet", 1000, 0, HOUR, 1000, 1499 },
	{ "a number that makes no sense", 1000, -7, HOUR, 1000, 1499 },
	{ "so many that it has an end", 1000, 1000, HOUR, HOUR / 3 * 2, HOUR },
	{ "the most that there can be", 1, INT32_MAX, HOUR, HOUR / 3 * 2,
	    HOUR },
	{ "a day and a half", 30000, 40, DAY + DAY / 2, DAY, DAY + DAY / 2 },
	{ "no pause", 0, 1000, HOUR, 0, 0 },
	{ "a millisecond", 1, 1, HOUR, 1, 1 },
	{ "a first pause near the end", HOUR / 6 * 5, 3, HOUR, HOUR / 6 * 5,
	    HOUR },
	{ "a first pause that is the end", HOUR, 3, HOUR, HOUR, HOUR },
	{ "a first pause beyond the end", DAY, 3, HOUR, DAY, DAY },
};

TEST(pauses_are_between)
{
	int64_t least, most;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		const struct row *r = &rows[i];

		least = backoff_pause(r->first, r->failures, r->most, LEAST);
		most = backoff_pause(r->first, r->failures, r->most, MOST);
		if (least != r->least_pause ||
		    most < r->most_pause - 1 - r->most_pause / 50000 ||
		    most > r->most_pause)
			fail_msg("%s: %lld to %lld", r->name, (long long)least,
			    (long long)most);
	}
}

/* However often it failed: never shorter, and spread evenly. */
TEST(pauses_grow_and_are_spread)
{
	int64_t pause, before = 0;
	int failures;

	for (failures = 1; failures < 100; failures++) {
		pause = backoff_pause(700, failures, HOUR, LEAST);
		assert_true(pause >= before);
		before = pause;
	}
	assert_int_equal(backoff_pause(1000, 1, HOUR, UINT32_MAX / 2), 1249);
	assert_int_equal(backoff_pause(1000, 1, HOUR, UINT32_MAX / 4), 1124);
}
