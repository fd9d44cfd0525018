/*
 * See digest.h.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "digest.h"

void
digest_begin(struct digest *d)
{
	(void)SHA256_Init(&d->sha);
}

void
digest_end(struct digest *d, unsigned char out[DIGEST_LEN])
{
	(void)SHA256_Final(out, &d->sha);
}

void
digest_bytes(struct digest *d, const void *bytes, size_t n)
{
	(void)SHA256_Update(&d->sha, bytes, n);
}

void
digest_count(struct digest *d, uint64_t n)
{
	const uint64_t be = htobe64(n);

	digest_bytes(d, &be, sizeof(be));
}

void
digest_part(struct digest *d, const void *bytes, size_t n)
{
	digest_count(d, n);
	digest_bytes(d, bytes, n);
}

void
digest_text(struct digest *d, const char *s)
{
	digest_part(d, s, strlen(s));
}

void
digest_nested(struct digest *d, struct digest *nested)
{
	unsigned char out[DIGEST_LEN];

	digest_end(nested, out);
	digest_bytes(d, out, sizeof(out));
}

void
digest_of(const void *bytes, size_t n, unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_bytes(&d, bytes, n);
	digest_end(&d, out);
}

/* Begins with the secret, each of its bytes changed by mask, as a whole block
 * of SHA-256. */
static void
begin_with(struct digest *d, const unsigned char *secret, unsigned char mask)
{
	unsigned char block[64];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] =
		    (unsigned char)((i < DIGEST_LEN ? secret[i] : 0) ^ mask);
	digest_begin(d);
	digest_bytes(d, block, sizeof(block));
}

/* RFC 2104, section 2. */
void
digest_mac_for(const unsigned char *secret, const char *purpose,
    const void *bytes, size_t n, unsigned char out[DIGEST_LEN])
{
	struct digest inner, outer;

	begin_with(&inner, secret, 0x36);
	digest_bytes(&inner, purpose, strlen(purpose));
	digest_bytes(&inner, bytes, n);
	begin_with(&outer, secret, 0x5c);
	digest_nested(&outer, &inner);
	digest_end(&outer, out);
}
