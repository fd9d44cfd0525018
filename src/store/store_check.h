/*
 * Whether the arguments of a store's functions can be stored.
 */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include "store.h"

/* No deadline is further away (ms, some 30,000 years), so that sums do not
 * overflow. */
#define STORE_LONGEST 1000000000000000

/* store_reserve(), store_accept(); leased: an attempt begins now. */
bool store_check_reservation(const struct store_reservation *what, bool leased);

/* store_finish() */
bool store_check_finish(const struct store_lease *lease, int64_t retention,
    const struct store_outcome *outcome);

/* store_resolve(), store_resolve_by_operator() */
bool store_check_resolve(
    int64_t id, const struct store_outcome *outcome, bool by_operator);

/* store_abandon() */
bool store_check_abandon(int64_t id, const struct store_outcome *outcome);

#endif
