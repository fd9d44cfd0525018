/*
 * How requests are admitted: see store_admit.h; and whether anything may begin.
 */
#ifndef POSTGRES_ADMIT_H
#define POSTGRES_ADMIT_H

#include "postgres_impl.h"

/* Notes for health how a transaction that admits a request ended. */
void postgres_admit_result(struct store *s, enum rc rc);

/* RC_UNRECORDED: outcomes cannot be recorded, so that nothing may begin; or
 * those of that path (NULL: any) because of locks in the database.  RC_UNSAFE:
 * nor may it while the server may lose commits. */
enum rc postgres_may_begin(struct store *s, const char *path);

/* The same of a transaction's connection, which may be a new one: RC_UNSAFE. */
enum rc postgres_may_begin_by(const struct pg *pg);

/* Reserves a key and rolls that back.  RC_OK: it would succeed; else why (of
 * size bytes) tells the reason. */
enum rc postgres_admit_try(struct store *s, char *why, size_t size);

#endif
