/*
 * The place of a key in the store, for the verbs that begin one: its record as
 * the transaction sees it, the decision about that, and what a new row needs.
 */
#ifndef POSTGRES_PLACE_H
#define POSTGRES_PLACE_H

#include "digest.h"
#include "postgres_identity.h"
#include "postgres_impl.h"

/* How often a transaction looks again, because another one was faster. */
#define POSTGRES_PLACE_TRIES 8

struct postgres_place {
	struct store *store;
	const struct store_reservation *what;
	bool keep; /* the request is stored */
	unsigned char digest[POSTGRES_DIGEST_LEN],
	    fingerprint_spec_digest[DIGEST_LEN];

	/* of the last look */
	bool looked;
	struct record found; /* .id is 0: there is none */
	enum decision decision;
	bool is_new; /* there is no record, or it is past its retention */
	int64_t now; /* the server's; only if there is a record */
	int64_t fingerprint_spec; /* the number of its row; 0: none */
	int64_t id;    /* a number that no key has yet; 0: it was used */
	bool draws;    /* this one draws more numbers for others */
	int forgotten; /* store->forgotten at the guess */
};

/* RC_OK or RC_NOMEM.  postgres_place_end() is legal in any case. */
enum rc postgres_place_init(struct postgres_place *p, struct store *s,
    const struct store_reservation *what, bool keep);

/*
 * Reads the record of the identity, and decides, without limits: those are
 * seen by the statement that takes the place.
 */
enum rc postgres_place_look(struct postgres_place *p, struct pg *pg);

/*
 * Without a look: sets place->fingerprint_spec and place->id by what earlier
 * ones have left.  False: that is not enough.
 */
bool postgres_place_guess(struct postgres_place *p);

/* Whether the tables were larger than max_store at the last sweep. */
bool postgres_place_is_full(const struct postgres_place *p);

/* Draws more numbers, so that the next guess has one: queues the statement, and
 * reads its result. */
void postgres_place_draw(struct pg *pg);
enum rc postgres_place_drawn(struct postgres_place *p, struct pg *pg);

/* Remembers the spec, whose row a transaction of this process's has read or
 * made, and has committed.  So the row is lost only together with that
 * transaction, and the loss is noticed. */
void postgres_place_remember(struct postgres_place *p);

/* Forgets what was remembered: commits were lost. */
void postgres_place_forget(struct store *s);

/* Makes the row of place->fingerprint_spec if there is none. */
enum rc postgres_place_spec(struct postgres_place *place, struct pg *pg);

/* Prepares for a new row: place->fingerprint_spec has a row, and a record past
 * its retention is deleted. */
enum rc postgres_place_make(struct postgres_place *p, struct pg *pg);

/* The number of the new row; it counts as used from now on. */
int64_t postgres_place_id(struct postgres_place *p);

/* The limit that a statement found, as a decision; DECIDE_RUN: none.  The
 * transaction must be rolled back then. */
struct postgres_limits {
	bool crowded, open, no_room;
};
enum decision postgres_place_limit(const struct postgres_limits *l);

/* After the transaction, which ended with rc: gives found to the caller if rc
 * is RC_OK, and frees what is left. */
void
postgres_place_end(struct postgres_place *p, enum rc rc, struct record *found);

/* Remembers for health how a transaction that takes a place ended. */
void postgres_place_remember_result(struct store *s, enum rc rc);

/* RC_UNRECORDED: outcomes cannot be recorded, so that nothing may begin; or
 * those of that path (NULL: any) because of locks in the database.  RC_UNSAFE:
 * nor may it while the server may lose commits. */
enum rc postgres_place_may_begin(struct store *s, const char *path);

/* The same of a transaction's connection, which may be a new one: RC_UNSAFE.
 * postgres_place_look() asks it. */
enum rc postgres_place_may_begin_by(const struct pg *pg);

/* Reserves a key and rolls that back.  RC_OK: it would succeed; else why (of
 * size bytes) tells the reason. */
enum rc postgres_reserve_try(struct store *s, char *why, size_t size);

/* --- the columns of a reservation ----------------------------------------- */

/* max_kept as a number */
int64_t postgres_place_max_kept(const struct store_reservation *what);

/* Bytes of the environment, which is stored; 0: it is not. */
size_t postgres_place_environment(const struct postgres_place *p);

#endif
