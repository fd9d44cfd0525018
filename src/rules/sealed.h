/*
 * UUIDs that tell more to a process that has the store's secret than to any
 * other.  Each keeps random bits, and the rest depends on those and on the
 * secret.
 */
#ifndef SEALED_H
#define SEALED_H

#include <stdbool.h>
#include <stdint.h>

#include "uuid.h"

/* The store's secret (bytes). */
#define SCOPE_SECRET_LEN 32

/*
 * ONCE_FORM_KEY: a UUID that only this store gives (version 8, RFC 9562,
 * section 5.8).  The first half has 60 random bits.  The 62 bits of the second
 * half are an HMAC-SHA-256 of the first.
 *
 * sealed_form_key() makes it of a random UUID, in place.  sealed_is_form_key():
 * whether sealed_form_key() has made that text.
 */
void sealed_form_key(
    const unsigned char secret[SCOPE_SECRET_LEN], char uuid[UUID_LEN + 1]);
bool sealed_is_form_key(
    const unsigned char secret[SCOPE_SECRET_LEN], const char *text);

/*
 * The downstream key of a key: a random UUID (version 4) whose last 48 bits
 * tell the number of the key's row.  So a key is found by it without an index,
 * which each new key would have to write.
 *
 * sealed_downstream() puts the number into a random UUID.
 * sealed_downstream_id() returns the number; 0: the text tells none.  Any text
 * of that form tells some number: whether the row has that downstream key must
 * be seen.
 */
void sealed_downstream(const unsigned char secret[SCOPE_SECRET_LEN], int64_t id,
    char uuid[UUID_LEN + 1]);
int64_t sealed_downstream_id(
    const unsigned char secret[SCOPE_SECRET_LEN], const char *uuid);

/*
 * The Reference that a client is told: a UUID of version 8 that names one
 * request, and also tells the number of the identity that the request asked
 * for.  So the key is found by it, for a first run, a replay and a refusal
 * alike, and nothing need be written down for that.
 *
 * sealed_reference() makes it of 16 random bytes, of which the first 6 stay;
 * false: the number is too large.  sealed_reference_number(): false: it is no
 * UUID that sealed_reference() made under that secret.
 */
#define SEALED_REFERENCES (UINT64_C(1) << 56) /* numbers are below that */
bool sealed_reference(const unsigned char secret[SCOPE_SECRET_LEN],
    uint64_t number, unsigned char uuid[16]);
bool sealed_reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const unsigned char uuid[16], uint64_t *number);

#endif
