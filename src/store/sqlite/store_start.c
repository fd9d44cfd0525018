/*
 * Start: a worker takes the lease of an accepted key.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "uuid.h"
#include "rows.h"
#include "store_impl.h"
#include "verb.h"

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
	const struct store_reservation *what = st->what;
	struct store_lease *lease = st->lease;
	const enum record_state from =
	    st->job->attempt == 0 ? RECORD_PENDING : RECORD_FAILED_RETRYABLE;
	struct db_stmt *s;
	enum rc rc;

	if (!record_may_change(from, RECORD_IN_PROGRESS, false))
		return RC_INVALID;
	uuid_digits(lease->token);
	lease->id = st->job->id;
	lease->attempt = st->job->attempt + 1;
	s = db_stmt(db, QUERY_JOB_START);
	db_bindf(s, "idsiisiisizzzi", lease->id, st->job->attempt, lease->token,
	    st->owner, now + what->lease, verb_on_crash(what->on_crash),
	    what->retention, clock_wall(), verb_on_expired(what->on_expired),
	    rows_expired_retention(what), rows_lock(what->attempt),
	    rows_lock_file(what->attempt), what->reconcile_delay, now);
	rc = db_onef(s, "uf", lease->downstream, sizeof(lease->downstream),
	    lease->recovery_point, sizeof(lease->recovery_point));
	return rc == RC_NOTFOUND ? RC_LOST : rc;
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
