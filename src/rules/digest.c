/*
 * SHA-256 over parts.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
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

static enum rc
done(int good)
{
	return good == 1 ? RC_OK : RC_NOMEM;
}

enum rc
digest_begin(EVP_MD_CTX **md)
{
	const EVP_MD *type = sha256();

	if (*md == NULL)
		*md = EVP_MD_CTX_new();
	return type != NULL && *md != NULL
	    ? done(EVP_DigestInit_ex(*md, type, NULL))
	    : RC_NOMEM;
}

enum rc
digest_end(EVP_MD_CTX *md, unsigned char out[DIGEST_LEN])
{
	assert(EVP_MD_CTX_get_size(md) == DIGEST_LEN);
	return done(EVP_DigestFinal_ex(md, out, NULL));
}

enum rc
digest_bytes(EVP_MD_CTX *md, const void *bytes, size_t n)
{
	return n > 0 ? done(EVP_DigestUpdate(md, bytes, n)) : RC_OK;
}

enum rc
digest_count(EVP_MD_CTX *md, uint64_t n)
{
	unsigned char be[8];
	size_t i;

	for (i = 0; i < sizeof(be); i++)
		be[i] = (unsigned char)(n >> (56 - 8 * i));
	return digest_bytes(md, be, sizeof(be));
}

enum rc
digest_part(EVP_MD_CTX *md, const void *bytes, size_t n)
{
	enum rc rc = digest_count(md, n);

	return rc == RC_OK ? digest_bytes(md, bytes, n) : rc;
}

enum rc
digest_text(EVP_MD_CTX *md, const char *s)
{
	return digest_part(md, s, strlen(s));
}

enum rc
digest_nested(EVP_MD_CTX *md, EVP_MD_CTX *nested)
{
	unsigned char digest[DIGEST_LEN];
	enum rc rc = digest_end(nested, digest);

	return rc == RC_OK ? digest_bytes(md, digest, sizeof(digest)) : rc;
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
