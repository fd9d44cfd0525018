/*
 * Start: a worker takes the lease of an accepted key.
 */
#include "config.h"

#include <string.h>

#include "uuid.h"
#include "rows.h"
#include "store_impl.h"
#include "store_record.h"

struct start_write {
	struct write w;
	const struct record *job;
	const struct store_reservation *what;
	int64_t owner;
	struct store_lease *lease;
};

static enum rc
start_run(struct write *w, struct db *db, int64_t now)
{
	struct start_write *st = (struct start_write *)w;
	struct store_lease *lease = st->lease;
	struct step_terms terms;
	struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_record_read(db, st->job->id, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	w->did |= WRITE_AGAIN;
	uuid_digits(lease->token);
	rows_terms(st->what, lease->token, st->owner, &terms);
	rc = step_start(
	    &r, st->job->attempt, &terms, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_record_write(db, &was, &r, &s, NULL);
	if (rc == RC_OK)
		rows_lease(&r, lease);
	record_free(&r);
	return rc;
}

enum rc
sqlite_job_start(struct store *store, const struct record *job,
    const struct store_reservation *what, struct store_lease *lease)
{
	struct start_write st = {
		.w.run = start_run,
		.w.flags = WRITE_NEW,
		.job = job,
		.what = what,
		.lease = lease,
	};
	struct liveness *liveness;
	enum rc rc;

	memset(lease, 0, sizeof(*lease));
	if ((rc = store_may_lease(store, what, &liveness)) != RC_OK)
		return rc;
	st.owner = liveness_self(liveness);
	return committer_do(store->committer, &st.w);
}
