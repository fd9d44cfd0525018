/*
 * What is stored with a key, in tables beside its row: the body of its response
 * and its request.
 *
 * The body of a response is in the row of its key up to STORE_INLINE bytes.
 * Larger ones are in once_piece, or in once_body (see schema.sql).
 *
 * All functions run in the committer's transaction.
 */
#ifndef STORE_KEPT_H
#define STORE_KEPT_H

#include "db.h"
#include "kept.h"
#include "record.h"
#include "store.h"

/* A body of this size (bytes) is written only if the disk has room. */
#define STORE_LARGE (64 * 1024)

/* RC_FULL: the disk has no room for a body of that size. */
enum rc store_kept_room(struct db *db, size_t body);

/* Deletes what is stored with a key: the bodies, the request, the answer that
 * was not accepted and the delivered effects; or one of these. */
enum rc store_kept_delete(struct db *db, int64_t id);
enum rc store_kept_delete_pieces(struct db *db, int64_t id);
/* Bytes and pieces of the request of a key; RC_NOTFOUND: none. */
enum rc store_kept_find_request(
    struct db *db, int64_t id, int64_t *bytes, int64_t *pieces);
enum rc store_kept_delete_request(struct db *db, int64_t id);

/* The number of the pieces of a key's answer. */
enum rc store_kept_answer(struct db *db, int64_t id, int64_t *pieces);

/* Adds to the bytes of all requests. */
enum rc store_kept_count(struct db *db, int64_t bytes);

/* Runs a statement with one number as its parameter. */
enum rc store_kept_run(struct db *db, enum query query, int64_t id);

/* The bytes of the database that are in use. */
enum rc store_used_bytes(struct db *db, int64_t *bytes);

#endif
