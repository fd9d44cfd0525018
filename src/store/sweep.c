/*
 * A lease belongs to a process, and is dead when the kernel has dropped that
 * process's lock.  A deadline in the past alone frees nothing.
 *
 * The pass works in batches, so that no write transaction is long.
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
sweep_pass(struct store *store, struct pass *pass)
{
	struct store_change changes[SWEEP_BATCH];
	enum rc rc;
	int changed;

	do {
		memset(changes, 0, sizeof(changes));
		changed = 0;
		FAULT(SWEEP_BEFORE);
		rc = store_sweep(store, SWEEP_BATCH, changes, &changed);
		FAULT(SWEEP_AFTER);
		pass_log(LOG_WARN, "swept", changes, changed);
		store_changes_free(changes, changed);
		metrics_add(METRICS_SWEPT, changed);
		pass->n += changed;
	} while (rc == RC_OK && changed == SWEEP_BATCH && pass_goes_on(pass));
	return rc;
}

enum rc
sweep_key(struct store *store, const struct record *record, int *n)
{
	struct store_change change;
	enum rc rc;

	memset(&change, 0, sizeof(change));
	rc = store_recover(store, record->id, record->owner, &change, n);
	pass_log(LOG_WARN, "swept", &change, *n);
	store_changes_free(&change, *n);
	metrics_add(METRICS_SWEPT, *n);
	return rc;
}
