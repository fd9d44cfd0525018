/*
 * The pass that settles what dead owners left in progress.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "store.h"

/* Until there is nothing left to settle; logs each key.  *n: how many. */
enum rc sweep_pass(struct store *, int *n);

#endif
