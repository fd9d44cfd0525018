/*
 * Abandon: completes an accepted key that no worker has run within its
 * retention.  The response is one that oncewrap makes, and short.
 */
#include "config.h"

#include "store_check.h"
#include "store_impl.h"
#include "store_outcome.h"
#include "store_record.h"

static enum rc
abandon_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	struct step_answer answer;
	struct step s = { 0 };
	struct kept_columns c;
	struct record r, was;
	enum rc rc;

	store_outcome_begin_run(o);
	rc = store_record_read(db, o->id, &r);
	if (rc != RC_OK)
		return rc;
	was = r;
	kept_columns(&o->outcome, &c);
	answer = store_outcome_answer(&c);
	rc = step_abandon(&r, &answer, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_outcome_change(o, db, &was, &r, &s);
	record_free(&r);
	return rc;
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
