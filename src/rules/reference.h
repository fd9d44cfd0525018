/*
 * The Reference that a client is told: a UUID that names one request, and under
 * the store's secret also tells the identity that the request asked for.  So
 * the key is found by it, for a first run, a replay and a refusal alike, and
 * nothing need be written down for that.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdint.h>

#include "rc.h"
#include "scope.h"

/* Numbers of identities are below that. */
#define REFERENCE_NUMBERS (UINT64_C(1) << 56)

/*
 * Makes 16 random bytes a UUID of version 8 (RFC 9562, section 5.8): the first
 * 6 stay, the others are a check and the number, which only the secret tells.
 * RC_OK, or RC_NOMEM: the bytes are lost.
 */
enum rc reference_make(const unsigned char secret[SCOPE_SECRET_LEN],
    uint64_t number, unsigned char uuid[16]);

/* The number that it tells.  RC_NOTFOUND: it is no UUID that reference_make()
 * made under that secret; RC_NOMEM. */
enum rc reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const unsigned char uuid[16], uint64_t *number);

#endif
