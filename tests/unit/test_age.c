/*
 * age: requests of each age, in both forms, without a date, with several.
 */
#include "config.h"

#include "cases.h"

#include "age.h"

#define NITEMS(a) (sizeof(a) / sizeof((a)[0]))

/* 1994-11-06T08:49:37Z, and an hour. */
#define NOW  INT64_C(784111777000)
#define HOUR INT64_C(3600000)

static const struct {
	const char *name;
	const char *values[2]; /* of the field; NULL: not there */
	enum age age;
} rows[] = {
	{ "none", { NULL }, AGE_UNTOLD },
	{ "empty", { "" }, AGE_UNREADABLE },
	{ "now", { "Sun, 06 Nov 1994 08:49:37 GMT" }, AGE_GOOD },
	{ "now, RFC 3339", { "1994-11-06T09:49:37+01:00" }, AGE_GOOD },
	{ "an hour ago", { "1994-11-06T07:49:37Z" }, AGE_GOOD },
	{ "a millisecond more", { "1994-11-06T07:49:36.999Z" }, AGE_OLD },
	{ "a year ago", { "Sat, 06 Nov 1993 08:49:37 GMT" }, AGE_OLD },
	{ "1970", { "1970-01-01T00:00:00Z" }, AGE_OLD },
	{ "in an hour", { "1994-11-06T09:49:37Z" }, AGE_GOOD },
	{ "a millisecond later", { "1994-11-06T09:49:37.001Z" }, AGE_AHEAD },
	{ "9999", { "9999-12-31T23:59:59Z" }, AGE_AHEAD },
	{ "seconds", { "784111777" }, AGE_UNREADABLE },
	{ "no date", { "yesterday" }, AGE_UNREADABLE },
	{ "joined", { "1994-11-06T08:49:37Z, 1994-11-06T08:49:37Z" },
	    AGE_UNREADABLE },
	{ "twice", { "1994-11-06T08:49:37Z", "1994-11-06T08:49:37Z" },
	    AGE_UNREADABLE },
};

TEST(every_age)
{
	struct conf_route route;

	memset(&route, 0, sizeof(route));
	route.max_request_age = HOUR;
	route.request_timestamp = "X-Sent-At";
	for (size_t i = 0; i < NITEMS(rows); i++) {
		struct param params[] = { { "HTTP_DATE", "never" },
			{ "HTTP_X_SENT_AT", rows[i].values[0] },
			{ "HTTP_X_SENT_AT", rows[i].values[1] } };
		struct request request;
		enum age age;

		memset(&request, 0, sizeof(request));
		request.params = params;
		request.nparams = 1;
		while (request.nparams < 3 &&
		    params[request.nparams].value != NULL)
			request.nparams++;
		age = age_judge(&route, &request, NOW);
		if (age != rows[i].age)
			fail_msg("%s: %d", rows[i].name, (int)age);
		if (age != AGE_GOOD)
			assert_memory_equal(age_text(age), "is ", 3);
	}
}

TEST(a_request_without_the_option_has_no_limit)
{
	struct conf_route route;
	struct request request;

	memset(&route, 0, sizeof(route));
	memset(&request, 0, sizeof(request));
	assert_int_equal(age_judge(&route, &request, NOW), AGE_GOOD);
	/* of a default that this route does without */
	route.request_timestamp = "Date";
	assert_int_equal(age_judge(&route, &request, NOW), AGE_GOOD);
}
