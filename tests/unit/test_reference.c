/*
 * reference: a UUID that tells the number of an identity to a process that has
 * the secret, and to no other.
 */
#include "config.h"

#include "cases.h"

#include "reference.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret",
			   other[SCOPE_SECRET_LEN] = "another one";

/* The random bytes of a test: with them its chance is the same each time. */
static void
bytes_of(int i, unsigned char b[16])
{
	memset(b, 0xa5, 16);
	for (int at = 0; at < 6; at++)
		b[at] = (unsigned char)(i * 41 + at * 7);
}

TEST(number_is_told)
{
	static const uint64_t numbers[] = { 0, 1, 255, 256, UINT64_C(1) << 47,
		REFERENCE_NUMBERS - 1 };
	unsigned char b[16], random[16];
	uint64_t got;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		bytes_of((int)i, random);
		memcpy(b, random, sizeof(b));
		assert_int_equal(reference_make(secret, numbers[i], b), RC_OK);
		assert_memory_equal(b, random, 6);
		assert_int_equal(b[6] & 0xf0, 0x80);
		assert_int_equal(b[8] & 0xc0, 0x80);
		assert_int_equal(reference_number(secret, b, &got), RC_OK);
		assert_true(got == numbers[i]);
	}
}

TEST(two_references_of_one_number_have_no_likeness)
{
	unsigned char one[16], two[16];

	bytes_of(1, one);
	bytes_of(2, two);
	assert_int_equal(reference_make(secret, 7, one), RC_OK);
	assert_int_equal(reference_make(secret, 7, two), RC_OK);
	for (size_t i = 9; i < 16; i++)
		assert_int_not_equal(one[i], two[i]);
}

/* One of 262,144 passes. */
TEST(uuid_of_another_store_tells_nothing)
{
	unsigned char b[16];
	uint64_t got;

	for (int i = 0; i < 64; i++) {
		bytes_of(i, b);
		assert_int_equal(
		    reference_number(secret, b, &got), RC_NOTFOUND);
		assert_int_equal(reference_make(other, 7, b), RC_OK);
		assert_int_equal(
		    reference_number(secret, b, &got), RC_NOTFOUND);
	}
}

TEST(what_is_no_number_is_refused)
{
	unsigned char b[16] = "";

	assert_int_equal(
	    reference_make(secret, REFERENCE_NUMBERS, b), RC_INVALID);
}
