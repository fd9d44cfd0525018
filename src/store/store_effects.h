/*
 * Changes of effects that belong to other verbs.
 */
#ifndef STORE_EFFECTS_H
#define STORE_EFFECTS_H

#include "tx.h"

/* For recover: the tries of an owner that is lost are due again; adds their
 * number to *n.  One that another transaction has locked is left. */
enum rc store_effects_free(struct tx *tx, int64_t owner, int *n);

#endif
