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
 * The Reference that a client is told, and the downstream key that a key gets:
 * a UUID that names one request, or one key, and also tells the number of the
 * identity that the request asked for.  So the key is found by it, and nothing
 * need be written down for that.  A Reference does so for a first run, a replay
 * and a refusal alike.  Its version is 8.  That of a downstream key is 4,
 * because there are services that take no other.
 *
 * sealed_reference() makes it of 16 random bytes, of which the first 6 stay;
 * false: the number is too large.  sealed_reference_number(): false: it is no
 * UUID that sealed_reference() made of that kind under that secret.
 */
enum sealed_kind { SEALED_REFERENCE, SEALED_DOWNSTREAM };
#define SEALED_REFERENCES (UINT64_C(1) << 56) /* numbers are below that */
bool sealed_reference(const unsigned char secret[SCOPE_SECRET_LEN],
    enum sealed_kind kind, uint64_t number, unsigned char uuid[16]);
bool sealed_reference_number(const unsigned char secret[SCOPE_SECRET_LEN],
    enum sealed_kind kind, const unsigned char uuid[16], uint64_t *number);

#endif
