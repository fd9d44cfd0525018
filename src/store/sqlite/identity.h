/*
 * The number of an identity: what the index of identities holds instead of the
 * texts, because an index of texts is as large as half of the table.
 *
 * The upper 24 bits depend on the key alone, so that an operator's search for a
 * key without its scope is a range of the index; the lower 24 bits depend on
 * all three texts.  Both come from SipHash-2-4 under a key that only the store
 * knows.  So no client can choose names with equal numbers, and make a lookup
 * step over many rows.  Two identities may have the same number all the same:
 * a statement that uses the number compares the texts too.
 *
 * SQLite stores a number of 48 bits in 6 bytes.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "row_member.h"
#include "scope.h"
#include "store.h"

struct identity_seed {
	uint64_t k[2];
};

/* Makes the seed from the secret of the store.  */
void identity_seed_make(
    struct identity_seed *seed, const unsigned char secret[SCOPE_SECRET_LEN]);

/* The number of the identity, from -ROW_NUMBER_HALF on. */
int64_t identity_number(
    const struct identity_seed *seed, const struct store_identity *identity);

/* The first and the last number that an identity with that key can have. */
void identity_range(const struct identity_seed *seed, const char *key,
    int64_t *first, int64_t *last);

/* SipHash-2-4 of n bytes. */
uint64_t
identity_siphash(const struct identity_seed *seed, const void *data, size_t n);

#endif
