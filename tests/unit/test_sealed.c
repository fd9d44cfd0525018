/*
 * sealed, digest: UUIDs that tell more to a process that has the secret, and
 * the HMAC that makes them.  Stores keep what was made, so it must stay what it
 * is.
 */
#include "config.h"

#include "cases.h"

#include "digest.h"
#include "sealed.h"

static const unsigned char secret[SCOPE_SECRET_LEN] = "a secret",
			   other[SCOPE_SECRET_LEN] = "another one";

/* RFC 4231, section 4.3. */
TEST(mac_is_that_of_the_rfc)
{
	static const char text[] = "ya want for nothing?";
	static const unsigned char right[DIGEST_LEN] = { 0x5b, 0xdc, 0xc1, 0x46,
		0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95,
		0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
		0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43 };
	/* A shorter key ends with zeros. */
	static const unsigned char key[DIGEST_LEN] = "Jefe";
	unsigned char mac[DIGEST_LEN];

	digest_mac_for(key, "what do ", text, sizeof(text) - 1, mac);
	assert_memory_equal(mac, right, sizeof(mac));
}

/* --- form keys ------------------------------------------------------------ */

TEST(form_key_is_a_uuid_that_only_its_store_takes)
{
	char key[UUID_LEN + 1], random[UUID_LEN + 1];
	unsigned char bytes[16];

	for (int i = 0; i < 100; i++) {
		uuid_random(random);
		memcpy(key, random, sizeof(key));
		sealed_form_key(secret, key);
		assert_true(uuid_parse(key, bytes));
		assert_int_equal(bytes[6] >> 4, 8);
		assert_int_equal(bytes[8] >> 6, 2);
		assert_memory_equal(key, random, 14);
		assert_true(sealed_is_form_key(secret, key));
		assert_false(sealed_is_form_key(other, key));
		assert_false(sealed_is_form_key(secret, random));
	}
}

/* Each character counts, and its case. */
TEST(changed_form_key_is_refused)
{
	char key[UUID_LEN + 1], changed[UUID_LEN + 2];

	uuid_random(key);
	sealed_form_key(secret, key);
	for (size_t i = 0; i < UUID_LEN; i++) {
		memcpy(changed, key, sizeof(key));
		changed[i] = key[i] == '1' ? '2' : '1';
		assert_false(sealed_is_form_key(secret, changed));
		if (key[i] >= 'a') {
			changed[i] = (char)(key[i] - 'a' + 'A');
			assert_false(sealed_is_form_key(secret, changed));
		}
	}
	snprintf(changed, sizeof(changed), "%s1", key);
	assert_false(sealed_is_form_key(secret, changed));
	changed[UUID_LEN - 1] = '\0';
	assert_false(sealed_is_form_key(secret, changed));
	assert_false(sealed_is_form_key(secret, ""));
}

/* --- References ----------------------------------------------------------- */

/* The random bytes of a test: with them its chance is the same each time. */
static void
bytes_of(int i, unsigned char b[16])
{
	memset(b, 0xa5, 16);
	for (int at = 0; at < 6; at++)
		b[at] = (unsigned char)(i * 41 + at * 7);
}

TEST(reference_tells_its_number)
{
	static const uint64_t numbers[] = { 0, 1, 255, 256, UINT64_C(1) << 47,
		SEALED_REFERENCES - 1 };
	unsigned char b[16], random[16];
	uint64_t got;

	for (size_t i = 0; i < COUNT(numbers); i++) {
		bytes_of((int)i, random);
		memcpy(b, random, sizeof(b));
		assert_true(
		    sealed_reference(secret, SEALED_REFERENCE, numbers[i], b));
		assert_memory_equal(b, random, 6);
		assert_int_equal(b[6] & 0xf0, 0x80);
		assert_int_equal(b[8] & 0xc0, 0x80);
		assert_true(
		    sealed_reference_number(secret, SEALED_REFERENCE, b, &got));
		assert_true(got == numbers[i]);
	}
	assert_false(
	    sealed_reference(secret, SEALED_REFERENCE, SEALED_REFERENCES, b));
}

TEST(two_references_of_one_number_have_no_likeness)
{
	unsigned char one[16], two[16];

	bytes_of(1, one);
	bytes_of(2, two);
	assert_true(sealed_reference(secret, SEALED_REFERENCE, 7, one));
	assert_true(sealed_reference(secret, SEALED_REFERENCE, 7, two));
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
		assert_false(
		    sealed_reference_number(secret, SEALED_REFERENCE, b, &got));
		assert_true(sealed_reference(other, SEALED_REFERENCE, 7, b));
		assert_false(
		    sealed_reference_number(secret, SEALED_REFERENCE, b, &got));
	}
}

TEST(downstream_key_is_no_reference)
{
	unsigned char b[16];
	uint64_t got;

	for (int i = 0; i < 64; i++) {
		bytes_of(i, b);
		assert_true(sealed_reference(secret, SEALED_DOWNSTREAM, 7, b));
		assert_int_equal(b[6] & 0xf0, 0x40);
		assert_false(
		    sealed_reference_number(secret, SEALED_REFERENCE, b, &got));
		assert_true(sealed_reference_number(
		    secret, SEALED_DOWNSTREAM, b, &got));
		assert_int_equal(got, 7);
	}
}
