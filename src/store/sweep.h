/*
 * The pass that settles what dead owners left in progress.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "pass.h"

/* A turn of it, or until there is nothing left to settle; logs each key. */
enum rc sweep_pass(struct store *, struct pass *);

/*
 * The same for a key that a request found in progress, if the owner of its
 * lease is gone.  *n is 0 where there is nothing to settle yet.
 */
enum rc sweep_key(struct store *, const struct record *, int *n);

#endif
