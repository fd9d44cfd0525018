/*
 * The bytes of a Reference: 6 are random; 4 bits are the version, and 12 the
 * check; 2 bits are the variant, and 6 the check's rest; 7 bytes are the
 * number.  Check and number are masked by an HMAC-SHA-256 of the random bytes.
 * So two References of one key show no likeness, and of 262,144 UUIDs from
 * elsewhere one passes for a Reference.
 */
#include "config.h"

#include <string.h>

#include "digest.h"
#include "reference.h"

#define RANDOM    6 /* bytes */
#define HEAD      9 /* bytes before the number */
#define NUMBER    7 /* bytes */
#define VERSION_8 0x80
#define VARIANT   0x80
#define VARIANTS  0xc0 /* the bits of the variant */

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: reference\n";

/* Makes what the random bytes decide: the bytes before the number, and the
 * number 0. */
static enum rc
reference_mask(const unsigned char *secret, unsigned char b[16])
{
	unsigned char md[DIGEST_LEN];
	enum rc rc = digest_mac_for(secret, purpose, b, RANDOM, md);

	if (rc != RC_OK)
		return rc;
	memcpy(b + RANDOM, md, 16 - RANDOM);
	b[6] = (unsigned char)(VERSION_8 | (b[6] & 0x0f));
	b[8] = (unsigned char)(VARIANT | (b[8] & ~VARIANTS));
	return RC_OK;
}

enum rc
reference_make(const unsigned char secret[SCOPE_SECRET_LEN], uint64_t number,
    unsigned char uuid[16])
{
	enum rc rc;

	if (number >= REFERENCE_NUMBERS)
		return RC_INVALID;
	if ((rc = reference_mask(secret, uuid)) != RC_OK)
		return rc;
	for (int i = 15; i >= HEAD; i--, number >>= 8)
		uuid[i] ^= (unsigned char)number;
	return RC_OK;
}

enum rc
reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const unsigned char uuid[16], uint64_t *number)
{
	unsigned char mask[16];
	enum rc rc;

	*number = 0;
	memcpy(mask, uuid, sizeof(mask));
	if ((rc = reference_mask(secret, mask)) != RC_OK)
		return rc;
	if (memcmp(uuid, mask, HEAD) != 0)
		return RC_NOTFOUND;
	for (int i = HEAD; i < HEAD + NUMBER; i++)
		*number = *number << 8 | (uuid[i] ^ mask[i]);
	return RC_OK;
}
