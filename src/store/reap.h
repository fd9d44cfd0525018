/*
 * The pass that deletes keys past their retention.
 */
#ifndef REAP_H
#define REAP_H

#include "pass.h"

/* Runs one turn, which ends early if no key is left or a batch fails.  When the
 * pass ends it logs the number of keys. */
enum rc reap_pass(struct store *, struct pass *);

#endif
