/*
 * ONCE_FORM_KEY: a UUID that only this store gives (version 8, RFC 9562,
 * section 5.8).  The first half has 60 random bits.  The 62 bits of the second
 * half are an HMAC-SHA-256 of the first under the store's secret.
 */
#ifndef FORM_KEY_H
#define FORM_KEY_H

#include "conf.h"
#include "scope.h"

#define FORM_KEY_LEN 36

/* Makes the key of a random UUID, in place.  RC_OK, or RC_NOMEM: the text is no
 * key. */
enum rc form_key_sign(
    const unsigned char secret[SCOPE_SECRET_LEN], char uuid[FORM_KEY_LEN + 1]);

/* *good: form_key_sign() has made that text.  RC_OK or RC_NOMEM. */
enum rc form_key_check(
    const unsigned char secret[SCOPE_SECRET_LEN], const char *text, bool *good);

/* Whether a key from there must be such a key: the form field or query
 * parameter once_key. */
bool form_key_is_source(const struct conf_source *source);

#endif
