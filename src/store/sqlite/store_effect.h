/*
 * Effects, for recover: within the committer's transaction.
 */
#ifndef STORE_EFFECT_H
#define STORE_EFFECT_H

#include "db.h"

/* Makes the effects that a dead owner was trying due again, and adds their
 * number. */
enum rc store_effect_release(struct db *db, int64_t owner, int64_t now, int *n);

#endif
