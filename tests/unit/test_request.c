/*
 * request: parameters in order and with repeats.
 */
#include "config.h"

#include "cases.h"

#include "request.h"

#define NITEMS(a) (sizeof(a) / sizeof((a)[0]))

TEST(parameters_last_one_and_count)
{
	static const struct param params[] = {
		{ "A", "1" },
		{ "B", "" },
		{ "A", "2" },
		{ "a", "3" },
	};
	struct request r = { .params = params, .nparams = NITEMS(params) };

	assert_string_equal(request_param(&r, "A"), "2");
	assert_string_equal(request_param(&r, "B"), "");
	assert_string_equal(request_param(&r, "a"), "3");
	assert_null(request_param(&r, "C"));
	assert_int_equal(request_count(&r, "A"), 2);
	assert_int_equal(request_count(&r, "B"), 1);
	assert_int_equal(request_count(&r, "C"), 0);
	r.params = NULL;
	r.nparams = 0;
	assert_null(request_param(&r, "A"));
	assert_int_equal(request_count(&r, "A"), 0);
}
