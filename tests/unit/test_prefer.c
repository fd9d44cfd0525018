/*
 * prefer: fields that ask for respond-async, fields that do not, and fields
 * that are no list of preferences.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "prefer.h"

#define NITEMS(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *field;
	bool asks;
} rows[] = {
	{ "respond-async", true },
	{ "Respond-ASYNC", true },
	{ " \trespond-async \t", true },
	{ "respond-async, wait=100", true },
	{ "wait=100, respond-async", true },
	{ "wait=100,respond-async", true },
	{ ", ,respond-async,,", true },
	/* parameters do not count */
	{ "respond-async; a=1", true },
	{ "respond-async ;a ; b=\"x,y;z\"", true },
	{ "respond-async;", true },
	{ "respond-async;;a", true },
	{ "respond-async; a = 1, wait=1", true },
	/* an empty value is none */
	{ "respond-async=\"\"", true },
	{ "respond-async = \"\"", true },
	/* words may hold anything that the grammar allows */
	{ "return=minimal, respond-async", true },
	{ "a=\"respond-async, \\\" \\\\\", respond-async", true },
	{ "a=\"\t\xc3\xa4\xff\", respond-async", true },
	{ "!#$%&'*+-.^_`|~09AZ=az, respond-async", true },
	/* the first of one name counts */
	{ "respond-async, respond-async=1", true },
	{ "respond-async=1, respond-async", false },
	{ "respond-async=\"no\"", false },
	/* another preference */
	{ "", false },
	{ " ", false },
	{ ",", false },
	{ "wait=100", false },
	{ "respond-asyncx", false },
	{ "respond", false },
	{ "x; respond-async", false },
	{ "x=respond-async", false },
	{ "x=\"respond-async\"", false },
	{ "x=\", respond-async, \"", false },
	{ "handling=strict; a=\",respond-async\"", false },
	/* no preferences */
	{ "respond-async wait", false },
	{ "respond-async,=", false },
	{ "respond-async, a=", false },
	{ "respond-async=", false },
	{ "respond-async; =", false },
	{ "respond-async; a=", false },
	{ "respond-async, \"a\"", false },
	{ "respond-async, a=\"b", false },
	{ "respond-async, a=\"b\\", false },
	{ "respond-async, a=\"b\\\x7f\"", false },
	{ "respond-async, a=\"b\n\"", false },
	{ "respond-async, a=\"b\" c", false },
	{ "respond-async, (a)", false },
	{ "respond-async, \xc3\xa4", false },
	{ "respond-async\x01", false },
};

static bool
asks(const struct param *params, size_t n)
{
	struct request request;

	memset(&request, 0, sizeof(request));
	request.params = params;
	request.nparams = n;
	return prefer_respond_async(&request);
}

static void
every_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < NITEMS(rows); i++) {
		const struct param params[] = {
			{ "HTTP_X_PREFER", "respond-async=1" },
			{ "HTTP_PREFER", rows[i].field },
			{ "http_prefer", "respond-async=1" },
		};

		if (asks(params, NITEMS(params)) != rows[i].asks)
			fail_msg("\"%s\"", rows[i].field);
	}
}

static void
request_without_the_field_does_not_ask(void **state)
{
	static const struct param params[] = { { "PREFER", "respond-async" },
		{ "http_prefer", "respond-async" } };

	(void)state;
	assert_false(asks(NULL, 0));
	assert_false(asks(params, NITEMS(params)));
}

static void
lines_of_a_repeated_field_are_one_list(void **state)
{
	static const struct param later[] = { { "HTTP_PREFER", "wait=1" },
		{ "HTTP_X", "y" }, { "HTTP_PREFER", "respond-async" } };
	static const struct param first[] = { { "HTTP_PREFER",
						  "respond-async=1" },
		{ "HTTP_PREFER", "respond-async" } };

	(void)state;
	assert_true(asks(later, NITEMS(later)));
	assert_false(asks(first, NITEMS(first)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field),
		cmocka_unit_test(request_without_the_field_does_not_ask),
		cmocka_unit_test(lines_of_a_repeated_field_are_one_list),
	};

	return cmocka_run_group_tests_name("prefer", tests, NULL, NULL);
}
