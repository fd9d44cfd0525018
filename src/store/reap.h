/*
 * The pass that deletes keys past their retention.
 */
#ifndef REAP_H
#define REAP_H

#include "pass.h"

/* A turn of it, or until none is left, or a batch fails.  Logs how many keys
 * it were when it ends. */
enum rc reap_pass(struct store *, struct pass *);

#endif
