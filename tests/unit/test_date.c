/*
 * date: points in time in both forms, read and written, and what is neither.
 */
#include "config.h"

#include "cases.h"

#include "date.h"

/* As date -u -d says. */
static const struct {
	const char *text;
	int64_t wall;
} good[] = {
	{ "Sun, 06 Nov 1994 08:49:37 GMT", INT64_C(784111777000) },
	{ "Thu, 01 Jan 1970 00:00:00 GMT", INT64_C(0) },
	{ "Thu, 29 Feb 2024 23:59:59 GMT", INT64_C(1709251199000) },
	{ "Tue, 29 Feb 2000 00:00:00 GMT", INT64_C(951782400000) },
	{ "Sat, 31 Dec 2016 23:59:60 GMT", INT64_C(1483228800000) },
	{ "Fri, 31 Dec 9999 23:59:59 GMT", INT64_C(253402300799000) },
	{ "1970-01-01T00:00:00Z", INT64_C(0) },
	{ "1994-11-06T08:49:37Z", INT64_C(784111777000) },
	{ "1994-11-06t08:49:37z", INT64_C(784111777000) },
	{ "2024-02-29T12:00:00.5Z", INT64_C(1709208000500) },
	{ "2024-02-29T12:00:00.123999999Z", INT64_C(1709208000123) },
	{ "2024-02-29T12:00:00+01:30", INT64_C(1709202600000) },
	{ "2024-02-29T12:00:00.25-23:59", INT64_C(1709294340250) },
	{ "2024-02-29T12:00:00-00:00", INT64_C(1709208000000) },
	{ "1970-01-01T00:00:00+00:01", INT64_C(-60000) },
	{ "2016-12-31T23:59:60Z", INT64_C(1483228800000) },
	{ "9999-12-31T23:59:59.999Z", INT64_C(253402300799999) },
};

static const char *const bad[] = {
	"",
	"now",
	"0",
	"784111777",
	" Sun, 06 Nov 1994 08:49:37 GMT",
	"Sun, 06 Nov 1994 08:49:37 GMT ",
	"Sun, 06 Nov 1994 08:49:37 UTC",
	"Sun, 06 Nov 1994 08:49:37 gmt",
	"sun, 06 Nov 1994 08:49:37 GMT",
	"Sun, 06 nov 1994 08:49:37 GMT",
	"Mon, 06 Nov 1994 08:49:37 GMT",
	"Sun, 6 Nov 1994 08:49:37 GMT",
	"Sun,06 Nov 1994 08:49:37 GMT",
	"Sunday, 06-Nov-94 08:49:37 GMT",
	"Sun Nov  6 08:49:37 1994",
	"Sun, 06 Nov 94 08:49:37 GMT",
	"Sun, 06 Nov 1994 08:49 GMT",
	"Sun, 06 Nov 1994 24:00:00 GMT",
	"Sun, 06 Nov 1994 08:60:00 GMT",
	"Sun, 06 Nov 1994 08:49:61 GMT",
	"Sun, 06 Nov 1994 08:49:37.0 GMT",
	"Sun, 06 Nov 1994 08:49:37 +0000",
	"Wed, 31 Nov 1994 08:49:37 GMT",
	"Wed, 29 Feb 1900 00:00:00 GMT",
	"Wed, 31 Dec 1969 23:59:59 GMT",
	"Sun, 06",
	"Sun",
	"S",
	"1994-11-06",
	"1994-11-06 08:49:37Z",
	"1994-11-06T08:49:37",
	"1994-11-06T08:49Z",
	"1994-11-06T08:49:37.Z",
	"1994-11-06T08:49:37,5Z",
	"1994-11-06T08:49:37+01",
	"1994-11-06T08:49:37+0100",
	"1994-11-06T08:49:37+24:00",
	"1994-11-06T08:49:37+01:60",
	"1994-11-06T08:49:37 Z",
	"1994-11-06T08:49:37Zx",
	"1994-13-06T08:49:37Z",
	"1994-00-06T08:49:37Z",
	"1994-11-00T08:49:37Z",
	"1994-11-31T08:49:37Z",
	"2023-02-29T08:49:37Z",
	"2100-02-29T08:49:37Z",
	"1994-11-6T08:49:37Z",
	"94-11-06T08:49:37Z",
	"+994-11-06T08:49:37Z",
	"1969-12-31T23:59:59Z",
	"10000-01-01T00:00:00Z",
	"1994-11-06T8:49:37Z",
	"1994-W45-7",
	"1994-11-06T08:49:37+-1:30",
	"1994-11-06T08:49:37+ 1:30",
	"-994-11-06T08:49:37Z",
	"1994- 1-06T08:49:37Z",
	"Sun, 06 anF 1994 08:49:37 GMT",
	"1994-11-06T08:49:37.-1Z",
};

TEST(every_date_in_its_form_only)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t wall = -1, other = -1;
		bool imf = good[i].text[3] == ',';

		if (!date_parse(good[i].text, &wall) || wall != good[i].wall)
			fail_msg("%s: %lld", good[i].text, (long long)wall);
		assert_int_equal(date_imf(good[i].text, &other), imf);
		assert_int_equal(other, imf ? wall : -1);
		other = -1;
		assert_int_equal(date_rfc3339(good[i].text, &other), !imf);
		assert_int_equal(other, imf ? -1 : wall);
	}
}

TEST(what_is_no_date_leaves_the_time_as_it_was)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t wall = 42;

		if (date_parse(bad[i], &wall))
			fail_msg("\"%s\" is taken", bad[i]);
		assert_int_equal(wall, 42);
	}
}

/* Each day of 400 years, with its day of the week. */
TEST(days_follow_each_other)
{
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May",
		"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	static const char *const days[] = { "Thu", "Fri", "Sat", "Sun", "Mon",
		"Tue", "Wed" };
	int64_t n = 0, wall;
	char text[64], written[DATE_IMF_LEN + 1];

	for (int year = 1970; year < 2370; year++)
		for (int month = 0; month < 12; month++)
			for (int day = 1; day <= 31; day++) {
				snprintf(text, sizeof(text),
				    "%s, %02d %s %04d 00:00:00 GMT",
				    days[n % 7], day, months[month], year);
				if (!date_imf(text, &wall)) {
					assert_in_range(day, 29, 31);
					break;
				}
				assert_int_equal(wall, n * 86400000);
				date_put_imf(wall, written);
				assert_string_equal(written, text);
				snprintf(text, sizeof(text),
				    "%04d-%02d-%02dT00:00:00.000Z", year,
				    month + 1, day);
				assert_true(date_rfc3339(text, &wall));
				assert_int_equal(wall, n * 86400000);
				date_put_rfc3339(wall, written);
				assert_string_equal(written, text);
				n++;
			}
	/* 400 years have 146097 days. */
	assert_int_equal(n, 146097);
}

static const struct {
	const char *name;
	int64_t wall;
	const char *http, *rfc3339;
} dates[] = {
	{ "milliseconds are cut, not rounded", 784111777999,
	    "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.999Z" },
	{ "a leap day", 1709208000001, "Thu, 29 Feb 2024 12:00:00 GMT",
	    "2024-02-29T12:00:00.001Z" },
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

TEST(is_written_in_both_forms)
{
	char http[DATE_IMF_LEN + 1], rfc3339[DATE_RFC3339_LEN + 1];

	for (size_t i = 0; i < COUNT(dates); i++) {
		date_put_imf(dates[i].wall, http);
		date_put_rfc3339(dates[i].wall, rfc3339);
		if (strcmp(http, dates[i].http) != 0 ||
		    strcmp(rfc3339, dates[i].rfc3339) != 0)
			fail_msg("%s: %s, %s", dates[i].name, http, rfc3339);
	}
}
