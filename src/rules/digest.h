/*
 * SHA-256 over parts.
 *
 * What is hashed can be read back in one way only: each part is preceded by
 * its length, or has a fixed length.  Every function returns RC_OK or RC_NOMEM:
 * libcrypto's digests fail only when there is no memory.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "rc.h"

#define DIGEST_LEN 32

/* Begins a digest; makes *md first if it is NULL.  The caller calls
 * EVP_MD_CTX_free(). */
enum rc digest_begin(EVP_MD_CTX **md);
enum rc digest_end(EVP_MD_CTX *md, unsigned char out[DIGEST_LEN]);

/* A number, in eight bytes. */
enum rc digest_count(EVP_MD_CTX *md, uint64_t n);

/* Bytes, preceded by their length. */
enum rc digest_part(EVP_MD_CTX *md, const void *bytes, size_t n);
enum rc digest_text(EVP_MD_CTX *md, const char *s);

/* Bytes alone. */
enum rc digest_bytes(EVP_MD_CTX *md, const void *bytes, size_t n);

/* Ends a digest, and adds it to md. */
enum rc digest_nested(EVP_MD_CTX *md, EVP_MD_CTX *nested);

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
