/*
 * What is stored with a key, in tables beside its row: the body of its response
 * and its request.
 *
 * The body of a response is in the row of its key up to STORE_INLINE bytes.
 * Larger ones are in once_piece (see schema.sql).
 */
#ifndef STORE_BODY_H
#define STORE_BODY_H

#include "committer.h"
#include "rows.h"
#include "record.h"
#include "store.h"

/* --- in the open transaction ---------------------------------------------- */

/* A body of this size (bytes) is written only if the disk has room. */
#define STORE_LARGE (64 * 1024)

/* RC_FULL: the disk has no room for a body of that size. */
enum rc store_body_room(struct db *db, size_t body);

/* Deletes what is stored with a key: the bodies, the request, the answer that
 * was not accepted and the delivered effects; or one of these. */
enum rc store_body_delete_all(struct db *db, int64_t id);
enum rc store_body_delete_request(struct db *db, int64_t id);

/* Adds to the bytes of all requests. */
enum rc store_body_count(struct db *db, int64_t bytes);

/* Runs a statement with one number as its parameter. */
enum rc store_body_run(struct db *db, enum query query, int64_t id);

/* --- large bodies --------------------------------------------------------- */

/*
 * A large body, of an answer or of a stored request.  It is stored in
 * pieces, each in a transaction together with other writes, so that these do
 * not wait for all of it.  The transaction that completes or makes the key
 * writes the last piece and names them all.  No retry is answered before an
 * answer is whole, and no handler runs before its request is.
 *
 * once_unnamed names the pieces that no key names yet, and the process that
 * writes them.  If that process dies, store_body_recover() deletes them.  The
 * pieces of each body have a number of their own.  So two processes that settle
 * one key at the same time do not mix their pieces.
 */
struct store_body {
	struct write w; /* stores a piece, or deletes all */
	const void *data;
	size_t length;
	uint64_t bytes; /* of the whole request, for max_kept; 0: an answer */
	/* the number of the pieces: negative, which no key has; or that of the
	 * key, and nothing is stored before the key names it */
	int64_t id;
	int64_t owner; /* this process */
	size_t stored; /* bytes in pieces that are committed */
	int64_t begun; /* mono */
};

/* Prepares for storing the body of that key (0: there is none yet).  One that
 * is not large has the key's number. */
void store_body_init(
    struct store_body *b, struct store *store, int64_t key, uint64_t bytes);

/* Writes the first piece, in the open transaction. */
enum rc store_body_begin(const struct store_body *b, struct db *db);

/* Stores all pieces but the last one.  If that fails, those that were stored
 * count, and store_body_use() writes the others. */
enum rc store_body_store(struct store_body *b, struct store *store);

/* Writes the rest, in the transaction of a row that names the pieces from then
 * on.  RC_CORRUPT: some pieces have gone. */
enum rc store_body_use(const struct store_body *b, struct db *db);

/* Deletes the pieces, which no key names. */
enum rc store_body_drop(const struct store_body *b, struct db *db);

/* The same in a transaction of its own, and frees *b. */
void store_body_discard(struct store_body *b, struct store *store);

/* Deletes what dead processes have left. */
enum rc store_body_recover(struct store *store);

#endif
