/*
 * clock: the formats, by table, and that each clock runs.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"

static const struct row {
	const char *name;
	int64_t wall;
	const char *http, *rfc3339;
} rows[] = {
	{ "the beginning", 0, "Thu, 01 Jan 1970 00:00:00 GMT",
	    "1970-01-01T00:00:00.000Z" },
	{ "the example of RFC 9110", 784111777000,
	    "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z" },
	{ "milliseconds are cut, not rounded", 784111777999,
	    "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.999Z" },
	{ "a leap day", 1709208000001, "Thu, 29 Feb 2024 12:00:00 GMT",
	    "2024-02-29T12:00:00.001Z" },
	{ "after 2038", 2147483648000, "Tue, 19 Jan 2038 03:14:08 GMT",
	    "2038-01-19T03:14:08.000Z" },
	{ "the last of four digits", 253402300799999,
	    "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.999Z" },
	{ "later than that", 253402300800000, "Fri, 31 Dec 9999 23:59:59 GMT",
	    "9999-12-31T23:59:59.999Z" },
	{ "the end of the type", INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT",
	    "9999-12-31T23:59:59.999Z" },
	{ "before the beginning", -1, "Thu, 01 Jan 1970 00:00:00 GMT",
	    "1970-01-01T00:00:00.000Z" },
	{ "the other end of the type", INT64_MIN,
	    "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z" },
};

static void
formats(void **state)
{
	char http[CLOCK_HTTP_LEN + 1], rfc3339[CLOCK_RFC3339_LEN + 1];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		clock_http(rows[i].wall, http);
		clock_rfc3339(rows[i].wall, rfc3339);
		if (strcmp(http, rows[i].http) != 0 ||
		    strcmp(rfc3339, rows[i].rfc3339) != 0)
			fail_msg("%s: %s, %s", rows[i].name, http, rfc3339);
	}
}

static void
clocks_do_not_go_back(void **state)
{
	int64_t mono = clock_mono(), boot = clock_boot(), end = mono + 20;

	(void)state;
	assert_true(boot > 0);
	while (mono < end) {
		assert_true(clock_mono() >= mono);
		assert_true(clock_boot() >= boot);
		mono = clock_mono();
		boot = clock_boot();
	}
	assert_true(clock_wall() > 1600000000000);
}

/* To the millisecond, or one that lies on an edge. */
static void
the_wall_clock_at_boot_stands_still(void **state)
{
	int64_t first = clock_wall_at_boot(), now, end = clock_mono() + 20;
	int64_t difference;

	(void)state;
	do {
		now = clock_wall_at_boot();
		assert_true(now - first >= -1 && now - first <= 1);
	} while (clock_mono() < end);
	difference = clock_wall() - clock_boot() - now;
	assert_true(difference >= -50 && difference <= 50);
}

static void
the_boot_has_one_name(void **state)
{
	char one[CLOCK_BOOT_ID_LEN + 1], two[CLOCK_BOOT_ID_LEN + 1];

	(void)state;
	assert_true(clock_boot_id(one));
	assert_true(clock_boot_id(two));
	assert_int_equal(strlen(one), CLOCK_BOOT_ID_LEN);
	assert_string_equal(one, two);
	assert_int_equal(one[8], '-');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(clocks_do_not_go_back),
		cmocka_unit_test(the_wall_clock_at_boot_stands_still),
		cmocka_unit_test(the_boot_has_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
