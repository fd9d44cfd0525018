/*
 * What the rows of every store have in common: the checks of a row that was
 * read, and the log of rows that make no sense.  Rows are untrusted input.
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

/* Counts a row that is skipped, and logs it.  Each row is logged once, as long
 * as there are few; of many only some are logged. */
void rows_bad(const char *database, const char *table, int64_t id);

/* How many were counted so far. */
unsigned rows_bad_counted(void);

#endif
