/*
 * The pass that finds out what happened to unknown keys, by the programs that
 * their routes name.
 */
#ifndef RECONCILE_H
#define RECONCILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "store.h"

/*
 * Tries each key that is due, one after the other, until none is, the store
 * fails, or *stop is set.  Logs what becomes of each.  *n: how many were tried.
 */
enum rc reconcile_pass(
    struct store *, const struct conf *, const atomic_bool *stop, int *n);

#endif
