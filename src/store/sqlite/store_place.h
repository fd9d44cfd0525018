/*
 * The place of a key in the store, for the verbs that begin one: its record as
 * the transaction sees it, the decision about that, and room for a new row.
 */
#ifndef STORE_PLACE_H
#define STORE_PLACE_H

#include "db.h"
#include "store.h"
#include "store_stage.h"

/*
 * Reads the record of the reservation's identity into found, which is freed
 * first, and decides.  DECIDE_RUN: found is past its retention or may run
 * again; or there is no record, and found->id is 0.  The lease (it may be NULL)
 * gets the recovery point.
 */
enum rc store_place_find(struct db *db, const struct stage *st, int64_t now,
    struct record *found, struct store_lease *lease, enum decision *decision);

/* Whether a record that was found does not count: there is none, or it is past
 * its retention. */
bool store_place_is_new(const struct record *found, int64_t now);

/* Makes place for a new key: deletes the old one, past its retention, and sets
 * the numbers of the new row and of its fingerprint_spec. */
enum rc store_place_make(struct db *db, const struct record *old,
    const char *fingerprint_spec, int64_t now, int64_t *id,
    int64_t *fingerprint_spec_id);

/* What sqlite_reserve() and sqlite_accept() return of what they found. */
void store_place_found(
    enum decision decision, struct record *found, struct record *out);

#endif
