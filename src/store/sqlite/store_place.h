/*
 * The place of a key in the store, for the verbs that begin one: its record as
 * the transaction sees it, the decision about that, and room for a new row.
 */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "db.h"
#include "step.h"
#include "store.h"
#include "store_stage.h"

/*
 * Reads the record of the reservation's identity into found, which is freed
 * first, and decides.  DECIDE_RUN: found is past its retention or may run
 * again; or there is no record, and found->id is 0.
 */
enum rc store_place_find(struct db *db, const struct stage *st, int64_t now,
    struct record *found, enum decision *decision);

/* Whether a record that was found does not count: there is none, or it is past
 * its retention. */
bool store_place_is_new(const struct record *found, int64_t now);

/* Makes place for a new key: deletes the old one, past its retention, and makes
 * *found a record of RECORD_NONE with a number and a downstream key, which is
 * made of that UUID.  A record that may run again stays. */
enum rc store_place_make(struct db *db, const unsigned char *secret,
    const char *uuid, int64_t now, struct record *found);

/* Inserts the record that was made so and then begun, or writes the one that
 * was there; s: what step.h said.  Stores the request, if that is to be. */
enum rc store_place_take(struct db *db, struct stage *st,
    const struct record *was, const struct record *r, const struct step *s);

/* The number of the spec's row, which is made if there is none. */
enum rc
store_place_spec(struct db *db, const char *fingerprint_spec, int64_t *id);

/* What sqlite_reserve() and sqlite_accept() return of what they found. */
void store_place_found(
    enum decision decision, struct record *found, struct record *out);

#endif
