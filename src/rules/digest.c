/*
 * SHA-256 over parts.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/hmac.h>

#include "digest.h"

/* Fetched once: EVP_sha256() makes libcrypto fetch it at each use. */
static const EVP_MD *
sha256(void)
{
	static _Atomic(EVP_MD *) kept;
	EVP_MD *md = atomic_load(&kept), *other = NULL;

	if (md != NULL)
		return md;
	md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (md == NULL || atomic_compare_exchange_strong(&kept, &other, md))
		return md;
	EVP_MD_free(md);
	return other;
}

void
digest_begin(struct digest *d)
{
	const EVP_MD *type = sha256();

	d->md = EVP_MD_CTX_new();
	if (type == NULL || EVP_DigestInit_ex(d->md, type, NULL) != 1)
		digest_free(d);
}

void
digest_free(struct digest *d)
{
	EVP_MD_CTX_free(d->md);
	d->md = NULL;
}

enum rc
digest_end(struct digest *d, unsigned char out[DIGEST_LEN])
{
	const bool good =
	    d->md != NULL && EVP_DigestFinal_ex(d->md, out, NULL) == 1;

	digest_free(d);
	return good ? RC_OK : RC_NOMEM;
}

void
digest_bytes(struct digest *d, const void *bytes, size_t n)
{
	if (d->md != NULL && n > 0 && EVP_DigestUpdate(d->md, bytes, n) != 1)
		digest_free(d);
}

void
digest_count(struct digest *d, uint64_t n)
{
	unsigned char be[8];
	size_t i;

	for (i = 0; i < sizeof(be); i++)
		be[i] = (unsigned char)(n >> (56 - 8 * i));
	digest_bytes(d, be, sizeof(be));
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

	if (digest_end(nested, out) == RC_OK)
		digest_bytes(d, out, sizeof(out));
	else
		digest_free(d);
}

enum rc
digest_of(const void *bytes, size_t n, unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_bytes(&d, bytes, n);
	return digest_end(&d, out);
}

enum rc
digest_mac(const void *key, size_t key_len, const void *bytes, size_t n,
    unsigned char out[DIGEST_LEN])
{
	const unsigned char *mac =
	    HMAC(sha256(), key, (int)key_len, bytes, n, out, NULL);

	return mac != NULL ? RC_OK : RC_NOMEM;
}

enum rc
digest_mac_for(const unsigned char *secret, const char *purpose,
    const void *bytes, size_t n, unsigned char out[DIGEST_LEN])
{
	const size_t at = strnlen(purpose, DIGEST_FOR);
	unsigned char all[2 * DIGEST_FOR];

	assert(purpose[at] == '\0' && n <= DIGEST_FOR);
	memcpy(all, purpose, at);
	memcpy(all + at, bytes, n);
	return digest_mac(secret, DIGEST_LEN, all, at + n, out);
}
