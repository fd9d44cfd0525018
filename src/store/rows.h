/*
 * What the rows of every store have in common: the checks of a row that was
 * read, and the log of rows that make no sense.  Rows are untrusted input.
 */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "store_outbox.h"

/* Whether the texts can be an identity; NULL is none. */
bool
rows_identity_is_sound(const char *scope, const char *path, const char *key);

/* The state of that name, as an int; false and 0 if there is none. */
bool rows_state(const char *word, int *value);
bool rows_effect_state(const char *word, int *value);

/* Begins a change of that key, and moves its identity there. */
void rows_change(struct record *r, struct store_change *c);

/* Counts a row that is skipped, and logs it.  Each row is logged once, as long
 * as there are few; of many only some are logged. */
void rows_bad(const char *database, const char *table, int64_t id);

#endif
