/*
 * SHA-256 over parts.
 *
 * What is hashed can be read back in one way only: each part is preceded by
 * its length, or has a fixed length.  Each function that can fail returns RC_OK
 * or RC_NOMEM: libcrypto's digests fail only when there is no memory.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "rc.h"

#define DIGEST_LEN 32

struct digest {
	EVP_MD_CTX *md; /* NULL: there was no memory */
};

/* Between digest_begin() and digest_end() or digest_free() a failure stays:
 * digest_end() reports it. */
void digest_begin(struct digest *d);
enum rc digest_end(struct digest *d, unsigned char out[DIGEST_LEN]);
void digest_free(struct digest *d);

/* A number, in eight bytes. */
void digest_count(struct digest *d, uint64_t n);

/* Bytes, preceded by their length. */
void digest_part(struct digest *d, const void *bytes, size_t n);
void digest_text(struct digest *d, const char *s);

/* Bytes alone. */
void digest_bytes(struct digest *d, const void *bytes, size_t n);

/* Ends a digest, and adds it to d. */
void digest_nested(struct digest *d, struct digest *nested);

/* The digest of bytes alone. */
enum rc digest_of(const void *bytes, size_t n, unsigned char out[DIGEST_LEN]);

/*
 * HMAC-SHA-256 of a purpose and of n bytes, at most DIGEST_FOR of each, under
 * the secret of a store, which has DIGEST_LEN bytes.  No two purposes begin
 * alike, nor like anything else that is hashed under that secret: see scope.c.
 */
#define DIGEST_FOR 64
enum rc digest_mac_for(const unsigned char *secret, const char *purpose,
    const void *bytes, size_t n, unsigned char out[DIGEST_LEN]);

/* HMAC-SHA-256 of bytes alone (RFC 2104). */
enum rc digest_mac(const void *key, size_t key_len, const void *bytes, size_t n,
    unsigned char out[DIGEST_LEN]);

#endif
