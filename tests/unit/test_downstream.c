/*
 * downstream: a UUID that tells the number of its row to a process that has the
 * secret.
 */
#include "config.h"

#include "cases.h"

#include "downstream.h"
#include "uuid.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret",
			   other[SCOPE_SECRET_LEN] = "another one";

TEST(number_is_told)
{
	static const int64_t ids[] = { 1, 2, 3, 65536, INT64_C(1) << 45,
		RECORD_ID_MAX };
	char uuid[UUID_LEN + 1], random[UUID_LEN + 1];

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		uuid_random(random);
		memcpy(uuid, random, sizeof(uuid));
		assert_int_equal(downstream_bind(secret, ids[i], uuid), RC_OK);
		assert_int_equal(strlen(uuid), UUID_LEN);
		assert_memory_equal(uuid, random, 24);
		assert_int_equal(strspn(uuid + 24, "0123456789abcdef"), 12);
		assert_true(downstream_id(secret, uuid) == ids[i]);
		assert_true(downstream_id(other, uuid) != ids[i]);
	}
}

/* Two keys of one number, of two copies of a store, still differ. */
TEST(same_number_is_another_uuid)
{
	char one[UUID_LEN + 1], two[UUID_LEN + 1];

	uuid_random(one);
	uuid_random(two);
	assert_int_equal(downstream_bind(secret, 7, one), RC_OK);
	assert_int_equal(downstream_bind(secret, 7, two), RC_OK);
	assert_memory_not_equal(one, two, 24);
	assert_string_not_equal(one + 24, two + 24);
}

TEST(no_uuid_tells_no_number)
{
	static const char *const texts[] = { "", "x",
		"123e4567-e89b-42d3-a456-42661417400",
		"123e4567-e89b-42d3-a456-4266141740000",
		"123e4567-e89b-42d3-a456-42661417400G",
		"123e4567-e89b-42d3-a456-42661417400A",
		"123e4567-e89b-42d3-a456--26614174000" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(downstream_id(secret, texts[i]), 0);
}
