/*
 * The pass that deletes keys past their retention.
 */
#ifndef REAP_H
#define REAP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "store.h"

/* Until none is left, or a batch fails, or *stop is set.  *n: how many. */
enum rc reap_pass(struct store *, const atomic_bool *stop, int *n);

#endif
