/*
 * conf_near: how far a misspelled name is from what it was meant to be.
 */
#include "config.h"

#include "cases.h"

#include "conf_near.h"

static const struct {
	const char *a, *b;
	size_t distance;
} rows[] = {
	{ "", "", 0 },
	{ "workers", "workers", 0 },
	{ "worker", "workers", 1 },
	{ "wokrers", "workers", 1 },
	{ "Workers", "workers", 0 },
	{ "busy-timeout", "busy_timeout", 0 },
	{ "timout", "timeout", 1 },
	{ "time_out", "timeout", 1 },
	{ "realease", "release", 1 },
	{ "ab", "ba", 1 },
	{ "abc", "", 3 },
	{ "", "abc", 3 },
	{ "kitten", "sitting", 3 },
	{ "abcdefghijabcdefghijabcdefghijabcdefghij", "x", 40 },
	{ "abcdefghijabcdefghijabcdefghijabcdefghijk", "x", SIZE_MAX },
};

TEST(every_pair_both_ways)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (conf_near_distance(rows[i].a, rows[i].b) !=
			rows[i].distance ||
		    conf_near_distance(rows[i].b, rows[i].a) !=
			rows[i].distance)
			fail_msg("%s %s", rows[i].a, rows[i].b);
	}
}
