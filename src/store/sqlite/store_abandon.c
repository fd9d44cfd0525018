/*
 * Abandon: completes an accepted key that no worker has run within its
 * retention.  The response is one that oncewrap makes, and short.
 */
#include "config.h"

#include "clock.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_outcome.h"
#include "verb.h"

static enum rc
abandon_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	struct kept_columns c;
	struct db_stmt *s;
	enum rc rc;

	store_outcome_begin_run(o);
	w->did |= WRITE_ENDED_KEY;
	kept_columns(&o->outcome, &c);
	s = db_stmt(db, QUERY_ABANDON);
	db_bindf(s, "iiidddditoo", o->id, clock_wall(), now, c.keep, c.status,
	    c.kind, STORE_RESPONSE_VERSION, c.length, c.reason, c.fields,
	    c.nfields, c.body, c.nbody);
	rc = verb_change_state(s, RECORD_PENDING, RECORD_COMPLETED, RC_LOST);
	return rc == RC_OK ? store_outcome_completed(o, db, &c) : rc;
}

enum rc
sqlite_abandon(struct store *store, int64_t id, struct store_outcome **outcome)
{
	struct outcome_write *o;

	if (!store_check_abandon(id, *outcome))
		return RC_INVALID;
	o = store_outcome_write(*outcome, abandon_run, id);
	return store_outcome_do(store->committer, o, outcome);
}
