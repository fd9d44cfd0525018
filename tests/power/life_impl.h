/*
 * What the files of a life share.  See life.h.
 */
#ifndef LIFE_IMPL_H
#define LIFE_IMPL_H

#include "../unit/store_admits.h"
#include "life.h"

struct sqlite3;
struct sqlite3_stmt;

/* The rows of that table that are no part of a body (see part.c), and bytes of
 * once_meta.kept_bytes that are. */
int
life_part_select(struct sqlite3 *, const char *table, struct sqlite3_stmt **);
int64_t life_part_kept(struct sqlite3 *);

/* The first thing that must not be. */
void life_wrong(struct life *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The store has committed something: a commit after a failed one leaves
 * nothing of that, and makes durable what was before it. */
void life_committed(struct life *);

struct store_reservation life_reservation(const struct life_key *);

/* The lease's end, or without one what was found out. */
struct store_outcome *life_outcome(struct life *, struct life_key *,
    const struct life_step *, enum record_state);
enum rc life_finish(struct life *, struct life_key *, const struct life_step *,
    struct store_outcome **, bool *answered);

/* Notes what became of the key, of which that state was asked; returns rc. */
enum rc
life_settled(struct life *, struct life_key *, enum record_state, enum rc);

/* Of the body of that key's answer; and of any request. */
unsigned char life_byte(const struct life_key *, size_t at);
unsigned char life_request_byte(size_t at);

/* The bytes of a request beside its body. */
extern const size_t life_environment_len;

/* --- said.c --------------------------------------------------------------- */

/* LIFE_SAY and what follows it in the list. */
enum rc
life_said_step(struct life *, struct life_key *, const struct life_step *);

/* Of handlers' transactions: each is there whole, or not at all. */
void life_look_at_deeds(struct life *, bool crashed);

#endif
