/*
 * caller: which requests are one caller's, on which route, and its name.
 */
#include "config.h"

#include "cases.h"

#include "scope.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = { 1, 2, 3 };

static int64_t
number(const char *scope, const char *address, const char *route)
{
	const int64_t n = scope_caller_number(secret, scope, address, route);

	assert_in_range(n, 1, (INT64_C(1) << 62) - 1);
	return n;
}

/* Rows with the same name are one caller. */
static const struct {
	const char *scope, *address, *name;
} rows[] = {
	{ "", "192.0.2.7", "192.0.2.7" },
	{ "", "::ffff:192.0.2.7", "192.0.2.7" },
	{ "", "::FFFF:c000:207", "192.0.2.7" },
	{ "|", "192.0.2.7", "192.0.2.7" },
	{ "", "192.0.2.8", "192.0.2.8" },
	{ "", "2001:db8:0:1::7", "2001:db8:0:1::/64" },
	{ "", "2001:DB8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64" },
	{ "", "2001:db8:0:2::7", "2001:db8:0:2::/64" },
	{ "", "fe80::1%eth0", "fe80::/64" },
	{ "", "::1", "::/64" },
	{ "", NULL, "-" },
	{ "", "", "-" },
	{ "", "unix:", "-" },
	{ "", "/run/lighttpd.sock", "-" },
	{ "", "192.0.2.7.9", "-" },
	{ "", "1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:1:2:3:4:5:6:7:8:9:a", "-" },
	{ "ann", "192.0.2.7", "49915e0d" },
	{ "ann", "192.0.2.8", "49915e0d" },
	{ "ann", NULL, "49915e0d" },
	{ "192.0.2.7", NULL, "37dad677" },
};

TEST(callers_are_told_apart_by_scope_or_address)
{
	char name[CALLER_NAME_LEN + 1];
	int64_t n;

	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(name, 'x', sizeof(name));
		scope_caller_name(rows[i].scope, rows[i].address, name);
		assert_string_equal(name, rows[i].name);
		n = number(rows[i].scope, rows[i].address, "/pay");
		for (size_t j = 0; j < i; j++)
			assert_int_equal(
			    n == number(rows[j].scope, rows[j].address, "/pay"),
			    strcmp(rows[i].name, rows[j].name) == 0);
	}
}

TEST(numbers_of_a_caller_are_neighbours)
{
	const int64_t a = number("", "192.0.2.7", "/pay");
	const int64_t b = number("", "192.0.2.7", "");
	const int64_t other = number("", "192.0.2.8", "/pay");

	assert_int_not_equal(a, b);
	assert_int_equal(a >> CALLER_ROUTE_BITS, b >> CALLER_ROUTE_BITS);
	assert_int_not_equal(
	    a >> CALLER_ROUTE_BITS, other >> CALLER_ROUTE_BITS);
}

TEST(numbers_depend_on_the_secret)
{
	static const unsigned char another[SCOPE_SECRET_LEN] = { 1, 2, 4 };
	unsigned char cookie[CALLER_COOKIE_LEN], same[CALLER_COOKIE_LEN];

	assert_int_not_equal(
	    scope_caller_number(another, "", "192.0.2.7", "/pay"),
	    number("", "192.0.2.7", "/pay"));
	scope_caller_cookie(secret, "a=b", cookie);
	scope_caller_cookie(secret, "a=b", same);
	assert_memory_equal(cookie, same, sizeof(same));
	scope_caller_cookie(secret, "a=c", same);
	assert_memory_not_equal(cookie, same, sizeof(same));
	scope_caller_cookie(another, "a=b", same);
	assert_memory_not_equal(cookie, same, sizeof(same));
}
