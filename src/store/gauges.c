/*
 * See gauges.h.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>

#include "gauges.h"

/* A later time (ms) makes no sense; some 30,000 years. */
#define LATEST INT64_C(1000000000000000)

void
gauges_unknown(struct metrics_gauges *g)
{
	for (int id = 0; id < METRICS_N; id++)
		g->value[id] = -1;
}

int64_t *
gauges_of(struct metrics_gauges *g, enum record_state state)
{
	switch (state) {
	case RECORD_PENDING:
		return &g->value[METRICS_KEYS_PENDING];
	case RECORD_IN_PROGRESS:
		return &g->value[METRICS_KEYS_IN_PROGRESS];
	case RECORD_COMPLETED:
		return &g->value[METRICS_KEYS_COMPLETED];
	case RECORD_FAILED_RETRYABLE:
		return &g->value[METRICS_KEYS_FAILED_RETRYABLE];
	case RECORD_UNKNOWN:
		return &g->value[METRICS_KEYS_UNKNOWN];
	case RECORD_DEAD_LETTER:
		return &g->value[METRICS_KEYS_DEAD_LETTER];
	case RECORD_EXPIRED:
		return &g->value[METRICS_KEYS_EXPIRED];
	case RECORD_NONE:
		break;
	}
	assert(!"a state without a gauge");
	return NULL;
}

/* The clock may have been set back meanwhile, and the row may be corrupt. */
int64_t
gauges_age(int64_t then, int64_t now)
{
	const int64_t age = then > 0 && then < LATEST ? now - then : 0;

	return age > 0 ? age : 0;
}
