/*
 * identity: SipHash as its authors publish it, numbers that depend on each
 * text, and ranges that hold the numbers of a key.
 */
#include "config.h"

#include "cases.h"

#include "identity.h"

static struct identity_seed
seed_of(unsigned char first)
{
	unsigned char secret[SCOPE_SECRET_LEN] = { first };
	struct identity_seed seed;

	identity_seed_make(&seed, secret);
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
TEST(siphash_gives_the_published_values)
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

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(
		    identity_siphash(&seed, bytes, rows[i].n), rows[i].value);
}

TEST(each_text_counts_and_where_it_ends)
{
	const int64_t n = number("alice", "/pay", "k1");

	assert_int_equal(n, number("alice", "/pay", "k1"));
	assert_int_not_equal(n, number("bob", "/pay", "k1"));
	assert_int_not_equal(n, number("alice", "/refund", "k1"));
	assert_int_not_equal(n, number("alice", "/pay", "k2"));
	assert_int_not_equal(number("a", "bc", "k"), number("ab", "c", "k"));
	assert_int_not_equal(number("", "/", "k"), number("/", "", "k"));
}

/* Numbers in existing databases: another algorithm needs another
 * QUERIES_VERSION. */
TEST(numbers_stay_what_they_are)
{
	assert_int_equal(
	    number("alice", "/pay", "k1"), INT64_C(0x6cebdceba5af));
	assert_int_equal(number("", "/", ""), INT64_C(0x1f765799e477));
}

TEST(secrets_give_different_numbers)
{
	const struct store_identity identity = { "s", "/p", "k" };
	const struct identity_seed one = seed_of(1), two = seed_of(2);

	assert_int_not_equal(
	    identity_number(&one, &identity), identity_number(&two, &identity));
}

TEST(a_range_holds_the_numbers_of_its_key_alone)
{
	const struct identity_seed seed = seed_of(1);
	const int64_t limit = INT64_C(1) << 47;
	int64_t first, last, n;
	char scope[16], key[16];

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
