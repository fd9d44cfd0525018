/*
 * identity: SipHash as its authors publish it, numbers that depend on each
 * text, and ranges that hold the numbers of a key.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "identity.h"

static struct identity_seed
seed_of(unsigned char first)
{
	unsigned char secret[SCOPE_SECRET_LEN] = { first };
	struct identity_seed seed;

	assert_int_equal(identity_seed_make(&seed, secret), RC_OK);
	return seed;
}

static int64_t
number(const char *scope, const char *path, const char *key)
{
	const struct store_identity identity = { scope, path, key };
	const struct identity_seed seed = seed_of(1);

	return identity_number(&seed, &identity);
}

/* The key 00 01 .. 0f and the messages "", 00, .. 00 01 .. 0e of the reference
 * implementation (vectors.h of github.com/veorq/SipHash, vectors_sip64). */
static void
siphash_gives_the_published_values(void **state)
{
	static const struct identity_seed seed = {
		{ UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) }
	};
	static const struct {
		size_t n;
		uint64_t value;
	} rows[] = {
		{ 0, UINT64_C(0x726fdb47dd0e0e31) },
		{ 1, UINT64_C(0x74f839c593dc67fd) },
		{ 2, UINT64_C(0x0d6c8009d9a94f5a) },
		{ 7, UINT64_C(0xab0200f58b01d137) },
		{ 8, UINT64_C(0x93f5f5799a932462) },
		{ 15, UINT64_C(0xa129ca6149be45e5) },
	};
	unsigned char bytes[16];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
		    identity_siphash(&seed, bytes, rows[i].n), rows[i].value);
}

static void
each_text_counts_and_where_it_ends(void **state)
{
	const int64_t n = number("alice", "/pay", "k1");

	(void)state;
	assert_int_equal(n, number("alice", "/pay", "k1"));
	assert_int_not_equal(n, number("bob", "/pay", "k1"));
	assert_int_not_equal(n, number("alice", "/refund", "k1"));
	assert_int_not_equal(n, number("alice", "/pay", "k2"));
	assert_int_not_equal(number("a", "bc", "k"), number("ab", "c", "k"));
	assert_int_not_equal(number("", "/", "k"), number("/", "", "k"));
}

/* Numbers in existing databases: another algorithm needs another
 * QUERIES_VERSION. */
static void
numbers_stay_what_they_are(void **state)
{
	(void)state;
	assert_int_equal(
	    number("alice", "/pay", "k1"), INT64_C(0x6cebdceba5af));
	assert_int_equal(number("", "/", ""), INT64_C(0x1f765799e477));
}

static void
secrets_give_different_numbers(void **state)
{
	const struct store_identity identity = { "s", "/p", "k" };
	const struct identity_seed one = seed_of(1), two = seed_of(2);

	(void)state;
	assert_int_not_equal(
	    identity_number(&one, &identity), identity_number(&two, &identity));
}

static void
a_range_holds_the_numbers_of_its_key_alone(void **state)
{
	const struct identity_seed seed = seed_of(1);
	const int64_t limit = INT64_C(1) << 47;
	int64_t first, last, n;
	char scope[16], key[16];

	(void)state;
	identity_range(&seed, "k", &first, &last);
	assert_int_equal(last - first, (1 << 24) - 1);
	for (int i = 0; i < 1000; i++) {
		snprintf(scope, sizeof(scope), "s%d", i);
		n = number(scope, "/p", "k");
		assert_true(n >= first && n <= last);
		assert_true(n >= -limit && n < limit);
		snprintf(key, sizeof(key), "k%d", i);
		n = number("s", "/p", key);
		assert_true(n < first || n > last);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_gives_the_published_values),
		cmocka_unit_test(each_text_counts_and_where_it_ends),
		cmocka_unit_test(numbers_stay_what_they_are),
		cmocka_unit_test(secrets_give_different_numbers),
		cmocka_unit_test(a_range_holds_the_numbers_of_its_key_alone),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
