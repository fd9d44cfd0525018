/*
 * The Reference that a client is told: a UUID that names one request, and under
 * the store's secret also tells the identity that the request asked for.  So
 * the key is found by it, for a first run, a replay and a refusal alike, and
 * nothing need be written down for that.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"
#include "scope.h"
#include "uuid.h"

/* Numbers of identities are below that. */
#define REFERENCE_NUMBERS (UINT64_C(1) << 56)

/*
 * Makes a random UUID one of version 8 (RFC 9562, section 5.8): its first 48
 * bits stay, the others are a check and the number, which only the secret
 * tells.  RC_OK, or RC_NOMEM: the UUID is unchanged.
 */
enum rc reference_bind(const unsigned char secret[SCOPE_SECRET_LEN],
    uint64_t number, char uuid[UUID_LEN + 1]);

/* The number that it tells.  RC_NOTFOUND: it is no UUID that
 * reference_bind() made under that secret; RC_NOMEM. */
enum rc reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *uuid, uint64_t *number);

/* The UUID of a text as people copy it: in any case, with or without
 * "urn:uuid:" and blanks around.  False: it is none. */
bool reference_parse(const char *text, char uuid[UUID_LEN + 1]);

#endif
