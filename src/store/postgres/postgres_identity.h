/*
 * What the index of identities holds instead of texts (see
 * once_key in schema.sql).  All of it is made under the store's secret, so that
 * no client can choose texts with the same values.
 */
#ifndef POSTGRES_IDENTITY_H
#define POSTGRES_IDENTITY_H

#include "pg.h"
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

/* Finds the number of a spec, which gets one. */
enum rc postgres_spec_number(struct pg *pg, const char *text, int64_t *number);

/*
 * Notes the number, after a transaction of that owner that has found it is
 * committed.  So its row is lost only together with that transaction: the loss
 * is noticed, and the process goes on as another owner.
 */
void postgres_spec_note(
    struct store *s, int64_t owner, const char *text, int64_t number);

/* A number that was noted; 0: none was. */
int64_t
postgres_spec_noted(const struct store *s, int64_t owner, const char *text);

void postgres_spec_free(struct store *s);

#endif
