/*
 * A large body, of an answer or of a request that is kept.  It is stored in
 * pieces, each in a transaction together with other writes, so that these do
 * not wait for all of it.  The transaction that completes or makes the key
 * writes the last piece and names them all.  No retry is answered before an
 * answer is whole, and no handler runs before its request is.
 *
 * once_stage names the pieces that no key names yet, and the process that
 * writes them.  If that process dies, store_body_recover() deletes them.  The
 * pieces of each body have a number of their own.  So two processes that settle
 * one key at the same time do not mix their pieces.
 */
#ifndef STORE_BODY_H
#define STORE_BODY_H

#include "store.h"
#include "committer.h"

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
