/*
 * Finds out what happened to unknown keys, by the programs that their routes
 * name.
 */
#ifndef RECONCILE_H
#define RECONCILE_H

#include <stdatomic.h>

#include "store.h"
#include "work.h"

/* Its self is the struct store. */
extern const struct work_kind reconcile_kind;

/*
 * Tries each due key, one after the other, until none is left, the store fails,
 * or *stop is set.  Logs each verdict.  *n: the number of keys tried.
 */
enum rc reconcile_all(struct store *store, const struct conf *conf,
    const atomic_bool *stop, int *n);

#endif
