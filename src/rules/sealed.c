/*
 * See sealed.h.  What the secret decides is an HMAC-SHA-256 of the bytes before
 * it.  A number is masked by it, so equal or neighbouring numbers show no
 * likeness.
 *
 * No other HMACs under the store's secret have these purposes: see scope.c.
 */
#include "config.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "sealed.h"

static uint64_t
mac_bits(const unsigned char *secret, const char *purpose, const char *head,
    size_t n)
{
	unsigned char md[DIGEST_LEN];
	uint64_t bits;

	digest_mac_for(secret, purpose, head, n, md);
	memcpy(&bits, md, sizeof(bits));
	return bits;
}

/* --- form keys ------------------------------------------------------------ */

/* Another site can put a key of its own choice into a form that a browser sends
 * here.  So a key from a form must be one that was given. */

/* "xxxxxxxx-xxxx-8xxx-" and "yxxx-xxxxxxxxxxxx". */
#define FORM_HEAD  19
#define FORM_DIGIT 14 /* the index of the version */

void
sealed_form_key(
    const unsigned char secret[SCOPE_SECRET_LEN], char uuid[UUID_LEN + 1])
{
	uint64_t mac;

	uuid[FORM_DIGIT] = '8';
	mac = mac_bits(secret, "oncewrap: form key\n", uuid, FORM_HEAD);
	/* The two bits of the variant are 10. */
	mac = (mac >> 2) | UINT64_C(1) << 63;
	snprintf(uuid + FORM_HEAD, UUID_LEN - FORM_HEAD + 1,
	    "%04" PRIx64 "-%012" PRIx64, mac >> 48,
	    mac & UINT64_C(0xffffffffffff));
}

bool
sealed_is_form_key(
    const unsigned char secret[SCOPE_SECRET_LEN], const char *text)
{
	char own[UUID_LEN + 1];

	if (strlen(text) != UUID_LEN)
		return false;
	memcpy(own, text, sizeof(own));
	sealed_form_key(secret, own);
	return CRYPTO_memcmp(own, text, UUID_LEN) == 0;
}

/* --- References and downstream keys --------------------------------------- */

/*
 * 6 bytes are random; 4 bits are the version, and 12 the check; 2 bits are the
 * variant, and 6 the check's rest; 7 bytes are the number.  So of 262,144 UUIDs
 * from elsewhere one passes for a Reference.
 */
#define REFERENCE_RANDOM 6
#define REFERENCE_HEAD   9 /* bytes before the number */

/* Makes what the random bytes decide: the bytes before the number, and the
 * number 0. */
static void
reference_mask(
    const unsigned char *secret, enum sealed_kind kind, unsigned char b[16])
{
	static const struct {
		const char *purpose;
		unsigned char version;
	} kinds[] = {
		[SEALED_REFERENCE] = { "oncewrap: reference\n", 8 },
		[SEALED_DOWNSTREAM] = { "oncewrap: downstream key\n", 4 },
	};
	unsigned char md[DIGEST_LEN];

	digest_mac_for(secret, kinds[kind].purpose, b, REFERENCE_RANDOM, md);
	memcpy(b + REFERENCE_RANDOM, md, 16 - REFERENCE_RANDOM);
	b[6] = (unsigned char)(kinds[kind].version << 4 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
}

bool
sealed_reference(const unsigned char secret[SCOPE_SECRET_LEN],
    enum sealed_kind kind, uint64_t number, unsigned char uuid[16])
{
	if (number >= SEALED_REFERENCES)
		return false;
	reference_mask(secret, kind, uuid);
	for (int i = 15; i >= REFERENCE_HEAD; i--, number >>= 8)
		uuid[i] ^= (unsigned char)number;
	return true;
}

bool
sealed_reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    enum sealed_kind kind, const unsigned char uuid[16], uint64_t *number)
{
	unsigned char mask[16];

	*number = 0;
	memcpy(mask, uuid, sizeof(mask));
	reference_mask(secret, kind, mask);
	if (memcmp(uuid, mask, REFERENCE_HEAD) != 0)
		return false;
	for (int i = REFERENCE_HEAD; i < 16; i++)
		*number = *number << 8 | (uuid[i] ^ mask[i]);
	return true;
}
