/*
 * recent: what happened a minute ago, an hour ago, and no longer ago.
 */
#include "config.h"

#include "cases.h"

#include "clock.h"
#include "recent.h"
#include "thread.h"

#define MINUTE INT64_C(60000)

/* The clock of this test: see Makefile.am. */
static int64_t now;
int64_t __wrap_clock_wall(void);

int64_t
__wrap_clock_wall(void)
{
	return now;
}

static uint32_t
all_of(enum recent_event event)
{
	struct recent_hour hour;
	uint32_t sum = 0;

	recent_hour(&hour);
	for (int i = 0; i < RECENT_MINUTES; i++)
		sum += hour.minute[i][event];
	return sum;
}

TEST(nothing_has_happened_at_the_start)
{
	now = 0;
	for (int e = 0; e < RECENT_EVENTS; e++)
		assert_int_equal(all_of((enum recent_event)e), 0);
}

TEST(events_move_back_and_end_after_an_hour)
{
	struct recent_hour hour;

	now = 1000 * MINUTE + 59999;
	recent_count(RECENT_FIRST);
	recent_count(RECENT_FIRST);
	recent_count(RECENT_REPLAY);
	for (int age = 0; age < RECENT_MINUTES; age++) {
		recent_hour(&hour);
		assert_int_equal(
		    hour.minute[RECENT_MINUTES - 1 - age][RECENT_FIRST], 2);
		assert_int_equal(all_of(RECENT_FIRST), 2);
		assert_int_equal(all_of(RECENT_REPLAY), 1);
		assert_int_equal(all_of(RECENT_UNKNOWN), 0);
		now += MINUTE;
	}
	assert_int_equal(all_of(RECENT_FIRST), 0);
}

/* The time that the page shows for what was counted; there is only that. */
static int64_t
shown(void)
{
	struct recent_hour hour;

	recent_hour(&hour);
	for (int i = 0; i < RECENT_MINUTES; i++)
		if (hour.minute[i][RECENT_FIRST] != 0)
			return hour.begin_wall + i * MINUTE;
	fail();
	return 0;
}

/* At each moment of the hour that follows, and of each part of a minute. */
TEST(a_count_keeps_the_utc_minute_in_which_it_happened)
{
	int64_t begun;

	for (int second = 0; second < 60; second += 7) {
		now += 100 * MINUTE + 1000 * second;
		begun = now;
		recent_count(RECENT_FIRST);
		for (; now / MINUTE < begun / MINUTE + 60; now += 7919)
			assert_int_equal(shown(), begun / MINUTE * MINUTE);
	}
}

/* The clock of a host without a battery is set, and set back. */
TEST(a_clock_that_is_set_shows_what_it_shows)
{
	now = 59999;
	recent_count(RECENT_REPLAY);
	assert_int_equal(all_of(RECENT_REPLAY), 1);
	now = INT64_C(1700049644321);
	assert_int_equal(all_of(RECENT_REPLAY), 0);
	recent_count(RECENT_REPLAY);
	now -= 20 * MINUTE;
	assert_int_equal(all_of(RECENT_REPLAY), 0);
	now += 20 * MINUTE;
	assert_int_equal(all_of(RECENT_REPLAY), 1);
}

/* Cells are used again; those of many hours ago too. */
TEST(a_cell_begins_anew)
{
	for (int i = 0; i < 500; i++) {
		now += MINUTE;
		recent_count(RECENT_REFUSAL);
		assert_int_equal(all_of(RECENT_REFUSAL),
		    i < RECENT_MINUTES ? i + 1 : RECENT_MINUTES);
	}
	now += 100000 * MINUTE;
	assert_int_equal(all_of(RECENT_REFUSAL), 0);
}

#define THREADS 4
#define EACH    20000

static void *
count_many(void *unused)
{
	for (int i = 0; i < EACH; i++)
		recent_count(RECENT_UNKNOWN);
	return unused;
}

TEST(no_count_of_several_threads_is_lost)
{
	pthread_t thread[THREADS];

	now += 1000 * MINUTE;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    thread_start(&thread[i], "count", 65536, count_many, NULL),
		    0);
	for (int i = 0; i < THREADS; i++)
		end_thread(thread[i]);
	assert_int_equal(all_of(RECENT_UNKNOWN), THREADS * EACH);
}
