/*
 * Rows as the parameters of one statement: an array for each column, which the
 * statement unnests.  The beginning and the end of a statement cost the server
 * more than a row does.
 */
#ifndef PG_ARRAY_H
#define PG_ARRAY_H

#include "pg.h"

#define PG_ARRAYS_MAX 40

/* All zero: no rows. */
struct pg_arrays {
	int rows, columns;
	enum rc rc; /* why a row could not be added */
	struct buf column[PG_ARRAYS_MAX];
};

/*
 * Adds a row: the letters and arguments of pg_send(), but s, t, b and o are
 * bytea, and
 *
 *	w	const char *; text.  NULL and "" are NULL
 *
 * All rows have the same letters.  A failure is returned by pg_result() for the
 * statement.
 */
void pg_arrays_add(struct pg_arrays *a, const char *format, ...);

/* Queues the statement with the rows (at least one), as pg_send(), and empties
 * *a. */
void pg_send_arrays(struct pg *pg, enum pg_query q, struct pg_arrays *a);

/* Writes the number as n bytes, the highest first, as the protocol has it. */
void pg_put_number(void *out, int64_t number, size_t n);

void pg_arrays_clear(struct pg_arrays *a);
void pg_arrays_free(struct pg_arrays *a);

#endif
