/*
 * Deletes the oldest keys first, in batches.  The pass sleeps between two
 * batches, because other processes that wait for the write lock try it only
 * every 2 ms.  It logs one line for all keys: a backlog may have hundreds of
 * thousands.
 */
#include "config.h"

#include <time.h>

#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "pass.h"
#include "reap.h"

enum rc
reap_pass(struct store *store, struct pass *pass)
{
	const struct timespec pause = { 0, 5000000 };
	struct store_change changes[STORE_REAP_MAX];
	enum rc rc;
	int reaped;

	do {
		nanosleep(&pause, NULL);
		FAULT(REAP_BEFORE);
		rc = store_reap(store, STORE_REAP_MAX, changes, &reaped);
		FAULT(REAP_AFTER);
		store_changes_free(changes, reaped);
		metrics_add(METRICS_EXPIRED, reaped);
		pass->n += reaped;
	} while (rc == RC_OK && reaped > 0 && pass_goes_on(pass));
	if (pass->n > 0 && !pass->more)
		log_event(LOG_INFO, "reaped", NULL, LOG_I("keys", pass->n));
	return rc;
}
