/*
 * The pass that recovers the keys that dead owners left in progress.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "pass.h"

/* Runs one turn, which ends early if nothing is left to recover.  Logs each
 * key. */
enum rc sweep_pass(struct store *, struct pass *);

/*
 * The same for one key that a request found in progress, if the owner of its
 * lease is dead.  *n is 0 if the key cannot be recovered yet.
 */
enum rc sweep_key(struct store *, const struct record *, int *n);

#endif
