/*
 * The specs of fingerprints, which have numbers in once_fingerprint_spec.
 */
#ifndef POSTGRES_SPEC_H
#define POSTGRES_SPEC_H

#include "pg.h"

struct store;

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
