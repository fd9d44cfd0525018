/*
 * reference: a UUID that tells the number of an identity to a process that has
 * the secret, and to no other.
 */
#include "config.h"

#include "cases.h"

#include "reference.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret",
			   other[SCOPE_SECRET_LEN] = "another one";

TEST(number_is_told)
{
	static const uint64_t numbers[] = { 0, 1, 255, 256, UINT64_C(1) << 47,
		REFERENCE_NUMBERS - 1 };
	char uuid[UUID_LEN + 1], random[UUID_LEN + 1];
	unsigned char bytes[16];
	uint64_t got;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uuid_random(random);
		memcpy(uuid, random, sizeof(uuid));
		assert_int_equal(
		    reference_bind(secret, numbers[i], uuid), RC_OK);
		assert_true(uuid_parse(uuid, bytes));
		assert_memory_equal(uuid, random, 13); /* 48 bits */
		assert_int_equal(uuid[14], '8');
		assert_non_null(strchr("89ab", uuid[19]));
		assert_int_equal(reference_number(secret, uuid, &got), RC_OK);
		assert_true(got == numbers[i]);
	}
}

TEST(two_references_of_one_number_have_no_likeness)
{
	char one[UUID_LEN + 1], two[UUID_LEN + 1];

	uuid_random(one);
	uuid_random(two);
	assert_int_equal(reference_bind(secret, 7, one), RC_OK);
	assert_int_equal(reference_bind(secret, 7, two), RC_OK);
	assert_string_not_equal(one + 24, two + 24);
}

/* One of 262,144 passes: of 64 none does, but by a chance of 1 in 4,096.  So
 * the random bytes are given here. */
TEST(uuid_of_another_store_tells_nothing)
{
	char uuid[UUID_LEN + 1];
	uint64_t got;

	for (int i = 0; i < 64; i++) {
		snprintf(uuid, sizeof(uuid), "%08x-%04x-4000-8000-000000000000",
		    i * 77777, i);
		assert_int_equal(
		    reference_number(secret, uuid, &got), RC_NOTFOUND);
		assert_int_equal(reference_bind(other, 7, uuid), RC_OK);
		assert_int_equal(
		    reference_number(secret, uuid, &got), RC_NOTFOUND);
	}
}

TEST(what_cannot_be_bound_is_refused)
{
	char uuid[UUID_LEN + 1] = "x";

	assert_int_equal(reference_bind(secret, 7, uuid), RC_INVALID);
	uuid_random(uuid);
	assert_int_equal(
	    reference_bind(secret, REFERENCE_NUMBERS, uuid), RC_INVALID);
}

#define UUID_TEXT "123e4567-e89b-82d3-a456-42661417400f"

TEST(texts_as_people_copy_them)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ UUID_TEXT, true },
		{ "urn:uuid:" UUID_TEXT, true },
		{ "URN:UUID:123E4567-E89B-82D3-A456-42661417400F", true },
		{ "  urn:uuid:" UUID_TEXT "\r\n", true },
		{ "", false },
		{ "urn:uuid:", false },
		{ "x", false },
		{ UUID_TEXT "0", false },
		{ UUID_TEXT " 0", false },
		{ "123e4567-e89b-82d3-a456-42661417400g", false },
		{ "123e4567-e89b-82d3-a456-4266141740", false },
		{ "123e4567 e89b-82d3-a456-42661417400f", false },
	};
	char uuid[UUID_LEN + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (reference_parse(cases[i].text, uuid) != cases[i].is)
			fail_msg("%s", cases[i].text);
		if (cases[i].is)
			assert_string_equal(uuid, UUID_TEXT);
	}
}
