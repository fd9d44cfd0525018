/*
 * SHA-256 over parts, and HMAC.  Neither can fail.
 *
 * What is hashed can be read back in one way only: each part is preceded by
 * its length, or has a fixed length.
 *
 * libcrypto calls these functions of its own deprecated, and keeps them.  Those
 * that it names instead allocate memory for each digest (some 15 times for an
 * HMAC), may fail for want of it, and load what takes 2 MB of memory.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#define DIGEST_LEN 32

struct digest {
	SHA256_CTX sha;
};

void digest_begin(struct digest *d);
void digest_end(struct digest *d, unsigned char out[DIGEST_LEN]);

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
void digest_of(const void *bytes, size_t n, unsigned char out[DIGEST_LEN]);

/*
 * HMAC-SHA-256 (RFC 2104) of a purpose and of n bytes after it, under the
 * secret of a store, which has DIGEST_LEN bytes.  No two purposes begin alike,
 * nor like anything else that is hashed under that secret: see scope.c.
 */
void digest_mac_for(const unsigned char *secret, const char *purpose,
    const void *bytes, size_t n, unsigned char out[DIGEST_LEN]);

#endif
