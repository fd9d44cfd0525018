/*
 * Reserve: a request takes the lease of its key and runs at once.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "store_check.h"
#include "store_admit.h"
#include "uuid.h"

void
store_reserve_init(struct store_admit *p, const struct store_reservation *what)
{
	store_admit_init(p, what, step_reserve);
	p->keep = what->reconcile_delay != 0;
	uuid_digits(p->token);
	if (what->resource)
		uuid_digits(p->resource);
}

enum rc
store_reserve(struct store *s, const struct store_reservation *what,
    struct store_lease *lease, enum decision *decision, struct record *found)
{
	struct store_admit p;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(lease, 0, sizeof(*lease));
	*decision = DECIDE_BUSY;
	if (!store_check_reservation(what, true))
		return RC_INVALID;
	if (what->unseen && !store_expects_new(s))
		return RC_OK;
	store_reserve_init(&p, what);
	rc = store_admit_do(s, &p);
	if (rc == RC_OK)
		*decision = p.decision;
	if (rc == RC_OK && p.decision == DECIDE_RUN) {
		rows_lease(&p.taken, lease);
		lease->no_request = !p.keep;
	} else if (rc == RC_OK) {
		*found = p.found;
		memset(&p.found, 0, sizeof(p.found));
	}
	store_admit_end(&p);
	return rc;
}
