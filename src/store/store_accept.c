/*
 * Accept: a request is stored and queued, and a worker runs it later.
 */
#include "config.h"

#include <string.h>

#include "store_check.h"
#include "store_admit.h"
#include "uuid.h"

enum rc
store_accept(struct store *s, const struct store_reservation *what,
    unsigned max_queue, struct store_ticket *ticket, enum decision *decision,
    struct record *found)
{
	struct store_admit p;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(ticket, 0, sizeof(*ticket));
	if (!store_check_reservation(what, false) || what->environment == NULL)
		return RC_INVALID;
	store_admit_init(&p, what, step_accept);
	p.accepts = p.keep = true;
	p.max_queue = max_queue;
	uuid_digits(p.resource);
	rc = store_admit_do(s, &p);
	if (rc == RC_OK)
		*decision = p.decision;
	if (rc == RC_OK && p.decision == DECIDE_RUN) {
		ticket->full = p.full;
		if (!p.full)
			memcpy(ticket->resource, p.taken.resource,
			    sizeof(ticket->resource));
	} else if (rc == RC_OK) {
		*found = p.found;
		memset(&p.found, 0, sizeof(p.found));
	}
	store_admit_end(&p);
	return rc;
}
