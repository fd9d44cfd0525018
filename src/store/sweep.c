/*
 * A lease belongs to a process, and is dead when the kernel has dropped that
 * process's lock.  A lease that merely ran out on the clock frees nothing.
 *
 * In batches, so that no write transaction is long.
 */
#include "config.h"

#include <string.h>

#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "pass.h"
#include "sweep.h"

#define SWEEP_BATCH 64

enum rc
sweep_pass(struct store *store, int *n)
{
	struct store_change changes[SWEEP_BATCH];
	enum rc rc;
	int changed;

	*n = 0;
	do {
		memset(changes, 0, sizeof(changes));
		changed = 0;
		FAULT(SWEEP_BEFORE);
		rc = store_sweep(store, SWEEP_BATCH, changes, &changed);
		FAULT(SWEEP_AFTER);
		pass_log(LOG_WARN, "swept", changes, changed);
		store_changes_free(changes, changed);
		metrics_add(METRICS_SWEPT, changed);
		*n += changed;
	} while (rc == RC_OK && changed == SWEEP_BATCH);
	return rc;
}
