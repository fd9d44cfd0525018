/*
 * digest: stores keep what was made with it, so it must stay what it is.
 */
#include "config.h"

#include "cases.h"

#include "digest.h"

/* RFC 4231, section 4.3. */
TEST(mac_is_that_of_the_rfc)
{
	static const char text[] = "what do ya want for nothing?";
	static const unsigned char right[DIGEST_LEN] = { 0x5b, 0xdc, 0xc1, 0x46,
		0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95,
		0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
		0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43 };
	unsigned char mac[DIGEST_LEN];

	assert_int_equal(
	    digest_mac("Jefe", 4, text, sizeof(text) - 1, mac), RC_OK);
	assert_memory_equal(mac, right, sizeof(mac));
}
