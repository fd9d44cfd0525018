/*
 * The downstream key of a key: a random UUID that also tells, under the store's
 * secret, the number of the key's row.  So a key is found by it without an
 * index, which each new key would have to write.
 */
#ifndef DOWNSTREAM_H
#define DOWNSTREAM_H

#include "record.h"
#include "scope.h"

/*
 * Puts the number into the last 48 bits of a random UUID (version 4); the other
 * 74 random bits stay.  To others it looks like any random UUID.  RC_OK, or
 * RC_NOMEM: the UUID is unchanged.
 */
enum rc downstream_bind(const unsigned char secret[SCOPE_SECRET_LEN],
    int64_t id, char uuid[RECORD_UUID_LEN + 1]);

/* The number that the text tells; 0: it tells none.  Any text of that form
 * tells some number: whether the row has that downstream key must be seen. */
int64_t
downstream_id(const unsigned char secret[SCOPE_SECRET_LEN], const char *uuid);

#endif
