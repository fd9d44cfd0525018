/*
 * A stored response, as the columns of a row.
 *
 * A body up to STORE_INLINE bytes is in the row of its key.  A larger one is
 * stored in pieces or is a handler's in SQLite, and in the row, too, in
 * PostgreSQL.
 */
#ifndef KEPT_H
#define KEPT_H

#include "row_member.h"
#include "store.h"

/* Bytes in a piece of a large body. */
#define STORE_PIECE (128 * 1024)

/* How headers are stored: as they are sent, or as the lines that a handler
 * wrote (see schema.sql). */
#define STORE_RESPONSE_VERSION 1
#define STORE_RESPONSE_LINES   2

/* SQLite may refuse a larger body (bytes) for good: the key then completes
 * without a stored response. */
#define STORE_MAX_BODY (768 * 1024 * 1024)

/* The columns "$response" of the statements, as they are read. */
struct kept_head {
	const char *reason; /* NULL: the registered one */
	int64_t kind, response_version;
	struct row_bytes headers;
	struct row_bytes body; /* only if it is in the row */
};

/* Those columns; n of them. */
extern const struct row_member kept_head[];
extern const size_t kept_nhead;

/* Reads the head of the response of a key that is kept.  RC_CORRUPT or
 * RC_VERSION: it makes no sense; RC_NOMEM. */
enum rc kept_head_read(
    const struct kept_head *h, const struct record *key, struct response *r);

/* The same with the body, if that is in the row.  If the response makes no
 * sense, store_answer() will say so. */
void kept_head_small(const struct kept_head *h, const struct record *key,
    struct store_inline_answer *small);

/* The columns to write, NULL or 0 where the response is not kept.  apart: the
 * body goes into pieces, in a store that has them. */
struct kept_columns {
	bool keep, apart;
	int status, kind;
	int64_t length;
	const char *reason;
	const void *fields, *body;
	size_t nfields, nbody;
};
void kept_columns(const struct store_outcome *outcome, struct kept_columns *c);

/*
 * There is no room for the outcome of that key: drops its response, and logs
 * that, unless the response is so small that this would gain nothing.  The key
 * is safe without it, and the caller gets the response.  Returns whether it was
 * dropped.
 */
bool kept_drop(struct store_outcome *outcome, int64_t id);

#endif
