/*
 * The store's gauges, as every kind of store fills them in.
 */
#ifndef GAUGES_H
#define GAUGES_H

#include <stdint.h>

#include "metrics.h"
#include "record.h"

/* No number is known: each gauge is -1. */
void gauges_unknown(struct metrics_gauges *g);

/* The gauge of the keys in that state, which is not RECORD_NONE. */
int64_t *gauges_of(struct metrics_gauges *g, enum record_state state);

/* The age (ms) of what changed at `then`, both wall clock (ms); 0 for a time
 * that makes no sense, or is yet to come. */
int64_t gauges_age(int64_t then, int64_t now);

#endif
