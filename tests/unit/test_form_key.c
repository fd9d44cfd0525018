/*
 * form_key: a UUID that only the store with that secret gives.
 */
#include "config.h"

#include "cases.h"

#include "form_key.h"
#include "uuid.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret",
			   other[SCOPE_SECRET_LEN] = "another one";

static bool
is_good(const unsigned char *by, const char *text)
{
	bool good;

	assert_int_equal(form_key_check(by, text, &good), RC_OK);
	return good;
}

TEST(signed_key_is_a_uuid_that_only_its_store_takes)
{
	char key[UUID_LEN + 1], random[UUID_LEN + 1];
	unsigned char bytes[16];

	for (int i = 0; i < 100; i++) {
		uuid_random(random);
		memcpy(key, random, sizeof(key));
		assert_int_equal(form_key_sign(secret, key), RC_OK);
		assert_true(uuid_parse(key, bytes));
		assert_int_equal(bytes[6] >> 4, 8);
		assert_int_equal(bytes[8] >> 6, 2);
		assert_memory_equal(key, random, 14);
		assert_true(is_good(secret, key));
		assert_false(is_good(other, key));
		assert_false(is_good(secret, random));
	}
}

/* Each character counts, and its case. */
TEST(changed_key_is_refused)
{
	char key[UUID_LEN + 1], changed[UUID_LEN + 2];

	uuid_random(key);
	assert_int_equal(form_key_sign(secret, key), RC_OK);
	for (size_t i = 0; i < UUID_LEN; i++) {
		memcpy(changed, key, sizeof(key));
		changed[i] = key[i] == '1' ? '2' : '1';
		assert_false(is_good(secret, changed));
		if (key[i] >= 'a') {
			changed[i] = (char)(key[i] - 'a' + 'A');
			assert_false(is_good(secret, changed));
		}
	}
	memcpy(changed, key, sizeof(key));
	changed[UUID_LEN] = '1';
	changed[UUID_LEN + 1] = '\0';
	assert_false(is_good(secret, changed));
	changed[UUID_LEN - 1] = '\0';
	assert_false(is_good(secret, changed));
	assert_false(is_good(secret, ""));
}

TEST(form_field_and_query_parameter_of_the_name_must_be_signed)
{
	static const struct {
		struct conf_source source;
		bool is;
	} cases[] = {
		{ { CONF_FROM_FORM, "once_key", NULL }, true },
		{ { CONF_FROM_QUERY, "once_key", NULL }, true },
		{ { CONF_FROM_FORM, "Once_key", NULL }, false },
		{ { CONF_FROM_FORM, "order", NULL }, false },
		{ { CONF_FROM_COOKIE, "once_key", NULL }, false },
		{ { CONF_FROM_HEADER, "once_key", "HTTP_ONCE_KEY" }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
		    form_key_is_source(&cases[i].source), cases[i].is);
}
