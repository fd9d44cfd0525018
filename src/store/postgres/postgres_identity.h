/*
 * What the index of identities holds instead of texts (see
 * once_key in schema.sql).  All of it is made under the store's secret, so that
 * no client can choose texts with the same values.
 */
#ifndef POSTGRES_IDENTITY_H
#define POSTGRES_IDENTITY_H

#include "store.h"

#define POSTGRES_DIGEST_LEN 16

/* once_key.digest of an identity.  RC_OK, or RC_NOMEM. */
enum rc postgres_identity_digest(const unsigned char secret[SCOPE_SECRET_LEN],
    const struct store_identity *identity,
    unsigned char digest[POSTGRES_DIGEST_LEN]);

/* The first and the last digest that an identity with that key can have. */
enum rc postgres_identity_range(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *key, unsigned char first[POSTGRES_DIGEST_LEN],
    unsigned char last[POSTGRES_DIGEST_LEN]);

#endif
