/*
 * See store_next.h.
 */
#include "config.h"

#include "store_next.h"

/*
 * After one was lost to another process, the same one may still be first,
 * because that process has not committed yet.  So the next read steps over as
 * many as were lost in a row.
 */
enum rc
store_next(struct store *s, struct store_next *n)
{
	enum rc rc;

	n->skip = atomic_load(n->lost);
	rc = store_tx_look(s, n->body, n);
	if (n->skip > 0 &&
	    (rc == RC_NOTFOUND || (rc == RC_OK && n->at > n->now))) {
		n->skip = 0;
		atomic_store(n->lost, 0);
		rc = store_tx_look(s, n->body, n);
	}
	return rc;
}

void
store_next_taken(atomic_uint *lost, enum rc rc)
{
	if (rc == RC_LOST)
		atomic_fetch_add(lost, 1);
	else
		atomic_store(lost, 0);
}
