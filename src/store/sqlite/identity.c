/*
 * See identity.h.  SipHash is described in Aumasson and Bernstein, "SipHash: a
 * fast short-input PRF", 2012.
 */
#include "config.h"

#include <string.h>

#include "digest.h"
#include "identity.h"

#define BITS 24 /* of each half of a number */

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: identity\n";

/* Numbers are read with the low byte first, so that a database can be moved to
 * another machine. */
static uint64_t
read_low_first(const unsigned char *bytes, size_t n)
{
	uint64_t word = 0;

	while (n-- > 0)
		word = word << 8 | bytes[n];
	return word;
}

void
identity_seed_make(
    struct identity_seed *seed, const unsigned char secret[SCOPE_SECRET_LEN])
{
	unsigned char md[DIGEST_LEN];

	digest_mac_for(secret, purpose, "", 0, md);
	seed->k[0] = read_low_first(md, 8);
	seed->k[1] = read_low_first(md + 8, 8);
}

static uint64_t
rotate_bits(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void
sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_bits(v[1], 13) ^ v[0];
		v[3] = rotate_bits(v[3], 16) ^ v[2];
		v[0] = rotate_bits(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_bits(v[1], 17) ^ v[2];
		v[3] = rotate_bits(v[3], 21) ^ v[0];
		v[2] = rotate_bits(v[2], 32);
	}
}

uint64_t
identity_siphash(const struct identity_seed *seed, const void *data, size_t n)
{
	uint64_t v[4] = {
		seed->k[0] ^ UINT64_C(0x736f6d6570736575),
		seed->k[1] ^ UINT64_C(0x646f72616e646f6d),
		seed->k[0] ^ UINT64_C(0x6c7967656e657261),
		seed->k[1] ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *bytes = data;
	const uint64_t length = (uint64_t)n << 56;
	uint64_t word;

	for (; n >= 8; n -= 8, bytes += 8) {
		word = read_low_first(bytes, 8);
		v[3] ^= word;
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	word = length | read_low_first(bytes, n);
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t
hash_text(const struct identity_seed *seed, const char *text)
{
	return identity_siphash(seed, text, strlen(text));
}

/* The number whose halves are the low bits of those. */
static int64_t
identity_join(uint64_t upper, uint64_t lower)
{
	const uint64_t mask = (UINT64_C(1) << BITS) - 1;

	return (int64_t)((upper & mask) << BITS | (lower & mask)) -
	    ROW_NUMBER_HALF;
}

int64_t
identity_number(
    const struct identity_seed *seed, const struct store_identity *identity)
{
	const uint64_t text[3] = {
		hash_text(seed, identity->key),
		hash_text(seed, identity->path),
		hash_text(seed, identity->scope),
	};
	unsigned char bytes[sizeof(text)];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(text[i / 8] >> i % 8 * 8);
	return identity_join(
	    text[0], identity_siphash(seed, bytes, sizeof(bytes)));
}

void
identity_range(const struct identity_seed *seed, const char *key,
    int64_t *first, int64_t *last)
{
	const uint64_t upper = hash_text(seed, key);

	*first = identity_join(upper, 0);
	*last = identity_join(upper, UINT64_MAX);
}
