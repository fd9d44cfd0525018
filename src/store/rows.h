/*
 * What the rows of every store have in common: their columns, the checks of a
 * row that was read, and the log of rows that make no sense.  Rows are
 * untrusted input.
 */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "row_member.h"
#include "step.h"
#include "store_operator.h"

/* The state of that name, as an int; false and 0 if there is none. */
bool rows_state(const char *word, int *value);
bool rows_effect_state(const char *word, int *value);

/* The columns of a key, "$row" in the statements, and of an effect, "$effect";
 * n of them each. */
extern const struct row_member rows_record[], rows_effect[];
extern const size_t rows_nrecord, rows_neffect;

/* Those of struct store_listed beside "$row" and "$response". */
extern const struct row_member rows_listed[];
extern const size_t rows_nlisted;

/*
 * Ends the reading of those columns, which has returned rc: the row must make
 * sense (RC_CORRUPT).  After a failure the struct has only the row's number,
 * and owns nothing.  identified: the columns have the identity.
 */
enum rc rows_record_end(struct record *r, bool identified, enum rc rc);
enum rc rows_effect_end(struct effect *e, enum rc rc);

/* Begins a change of that key, and moves its identity there. */
void rows_change(struct record *r, struct store_change *c);

/* The terms of an attempt, with that token and owner, for step.h. */
void rows_terms(const struct store_reservation *what, const char *token,
    int64_t owner, struct step_terms *terms);

/* What an attempt is told of the record that it has the lease of. */
void rows_lease(const struct record *r, struct store_lease *lease);

/* Counts a row that is skipped, and logs it: each row once, and only the first
 * ones. */
void rows_bad(const char *database, const char *table, int64_t id);

/* How many were counted so far. */
unsigned rows_bad_counted(void);

/* --- stored responses ----------------------------------------------------- */

/* A body up to STORE_INLINE bytes is in the row of its key, and a larger one in
 * pieces. */

/* Bytes in a piece of a large body in SQLite; and, in both stores, of the
 * largest body of a request that is in a row. */
#define STORE_PIECE (128 * 1024)

/* How headers are stored: as they are sent, or as the lines that a handler
 * wrote (see schema.sql). */
#define STORE_RESPONSE_VERSION 1
#define STORE_RESPONSE_LINES   2

/* SQLite may refuse a larger body (bytes) for good: the key then completes
 * without a stored response. */
#define STORE_MAX_BODY (768 * 1024 * 1024)

/* The columns "$response" of the statements, as they are read. */
struct rows_head {
	const char *reason; /* NULL: the registered one */
	int64_t kind, response_version;
	struct row_bytes headers;
	struct row_bytes body; /* only if it is in the row */
};

/* Those columns; n of them. */
extern const struct row_member rows_head[];
extern const size_t rows_nhead;

/* Reads the head of a stored response.  RC_CORRUPT or
 * RC_VERSION: it makes no sense; RC_NOMEM. */
enum rc rows_head_read(
    const struct rows_head *h, const struct record *key, struct response *r);

/* The same with the body, if that is in the row.  If the response makes no
 * sense, store_answer() will say so. */
void rows_head_small(const struct rows_head *h, const struct record *key,
    struct store_inline_answer *small);

/* The columns to write, NULL or 0 where no response is stored.  apart: the
 * body goes into pieces. */
struct rows_answer {
	bool keep, apart;
	int status, kind;
	int64_t length;
	const char *reason;
	const void *fields, *body;
	size_t nfields, nbody;
};
void rows_answer(const struct store_outcome *outcome, struct rows_answer *c);

#endif
