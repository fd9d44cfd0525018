/*
 * Oldest first, in batches: between two of them others get the write lock.
 */
#include "config.h"

#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "reap.h"

#define REAP_BATCH 100

enum rc
reap_pass(struct store *store, const atomic_bool *stop, int *n)
{
	enum rc rc;
	int reaped;

	*n = 0;
	do {
		reaped = 0;
		FAULT(REAP_BEFORE);
		rc = store_reap(store, REAP_BATCH, &reaped);
		FAULT(REAP_AFTER);
		metrics_add(METRICS_EXPIRED, reaped);
		*n += reaped;
	} while (rc == RC_OK && reaped == REAP_BATCH && !atomic_load(stop));
	if (*n > 0)
		log_event(LOG_INFO, "reaped", NULL, LOG_I("keys", *n));
	return rc;
}
