/*
 * A body that is stored before a key names it: that of a request, before its
 * key exists; and that of an answer to a key without a lease, before the key is
 * settled.  A large one is stored in pieces, each in a transaction together
 * with other writes, so that these do not wait for all of it.  The transaction
 * that makes or settles the key writes the last piece and names the others.  No
 * handler runs before a request is complete, and no retry is answered before
 * the answer is.
 *
 * once_stage names the pieces that no key names yet, and the process that
 * writes them.  If that process dies, store_recover() deletes them.  The pieces
 * of each write have a number of their own.  So two processes that settle one
 * key at the same time do not mix their pieces.
 */
#ifndef STORE_STAGE_H
#define STORE_STAGE_H

#include "db.h"
#include "store.h"
#include "write.h"

struct stage {
	const struct store_reservation *what; /* NULL: it is an answer */
	int64_t identity; /* the number of what->identity: see identity.h */
	bool keep;        /* the body is stored at all */
	const void *body;
	size_t length;
	uint64_t bytes; /* of the whole request, for max_kept */
	int64_t id;     /* the number of the pieces: negative, no key has it */
	int64_t owner;  /* this process */
	/* bytes in pieces: committed; including the last run */
	size_t stored, written;
	bool used; /* the last run made a key that names them */
	struct drop_write *drop;
};

/* Prepares for storing the request of that reservation; keep: it is stored at
 * all.  RC_OK, RC_NOMEM, or why this process has no lock.  store_stage_end() is
 * legal in any case. */
enum rc store_stage_init(struct stage *st, struct store *store,
    const struct store_reservation *what, bool keep);

/* The same for an answer.  If no key names its pieces in the end, the caller
 * deletes them by store_stage_drop(). */
enum rc store_stage_init_answer(
    struct stage *st, struct store *store, const void *body, size_t length);

/* Whether the body is stored in pieces. */
bool store_stage_is_large(const struct stage *st);

/* Deletes the pieces, and their row in once_stage. */
enum rc store_stage_drop(struct stage *st, struct db *db);

/* After the last run, whose result was rc: deletes pieces that no key names. */
void store_stage_end(struct stage *st, struct store *store, enum rc rc);

/* The flags of a write that stores the body. */
unsigned store_stage_flags(const struct stage *st);

/* At the start of each run: prepares for what the runs before it have done. */
void store_stage_begin_run(struct stage *st, const struct write *w);

/* Whether a run must not yet make the key, but only write a piece; and that
 * run. */
bool store_stage_has_more(const struct stage *st);
enum rc store_stage_piece(struct stage *st, struct write *w, struct db *db);

/* Bytes that the request still adds to those of all stored requests. */
uint64_t store_stage_bytes(const struct stage *st);

/* Writes the rest of the body, for a row that names the pieces from then on.
 * *pieces is their number, or 0: the row has the whole body.  RC_CORRUPT: some
 * pieces have gone, and the next run begins again. */
enum rc store_stage_use(struct stage *st, struct db *db, int64_t *pieces);

/* Deletes what dead processes have staged. */
enum rc store_stage_recover(struct store *store);

#endif
