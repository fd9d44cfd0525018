/*
 * Oldest first, in batches.  Between two of them is a pause, for other
 * processes that wait for the write lock look for it only every 2 ms.
 */
#include "config.h"

#include <time.h>

#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "pass.h"
#include "reap.h"

enum rc
reap_pass(struct store *store, const atomic_bool *stop, int *n)
{
	const struct timespec pause = { 0, 5000000 };
	struct store_change changes[STORE_REAP_MAX];
	enum rc rc;
	int reaped;

	*n = 0;
	for (;;) {
		FAULT(REAP_BEFORE);
		rc = store_reap(store, STORE_REAP_MAX, changes, &reaped);
		FAULT(REAP_AFTER);
		pass_log(LOG_INFO, "reaped", changes, reaped);
		store_changes_free(changes, reaped);
		metrics_add(METRICS_EXPIRED, reaped);
		*n += reaped;
		if (rc != RC_OK || reaped == 0 || atomic_load(stop))
			return rc;
		nanosleep(&pause, NULL);
	}
}
