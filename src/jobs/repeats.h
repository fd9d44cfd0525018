/*
 * How often the callers of each scope repeated a request.  Counted in memory,
 * because a replay writes nothing, and added to the store now and then.
 *
 * Bounded: of more than REPEATS_SCOPES scopes between two additions only the
 * first ones are counted, and none of a scope of more than REPEATS_LENGTH
 * bytes.  A process that is killed loses what it has not added yet.
 */
#ifndef REPEATS_H
#define REPEATS_H

#include <stdbool.h>

#include "store_operator.h"

#define REPEATS_SCOPES 256
#define REPEATS_LENGTH 512

/* A duplicate ran nothing, and was answered from the key's state; misuse: the
 * key is that of another request. */
void repeats_count(const char *scope, bool misuse);

/* Adds what was counted to the store.  On failure the counts stay. */
enum rc repeats_store(struct store *store);

#endif
