/*
 * Requests that are accepted now and run later: the queue, and the status
 * resource.
 */
#include "config.h"

#include <string.h>

#include "postgres_outcome.h"
#include "postgres_place.h"
#include "postgres_row.h"
#include "rows.h"
#include "store_check.h"
#include "uuid.h"

/* A read of one record, and of the server's time. */
struct job_read {
	const struct store *s;
	int64_t skip; /* jobs that are left to other processes */
	struct record *record;
	int64_t now;
};

static const struct row_member now_of[] = {
	ROW_MEMBER('m', job_read, now),
};

static enum rc
run_job_next(struct pg *pg, void *arg)
{
	struct job_read *r = arg;
	enum rc rc;

	memset(r->record, 0, sizeof(*r->record));
	pg_send(
	    pg, PG_QUERY_JOB_NEXT, "ii", r->skip, (int64_t)r->s->queued_from);
	if ((rc = pg_sync(pg)) == RC_OK && (rc = pg_result(pg)) == RC_OK)
		rc = postgres_row_next(r->s, pg, r->record);
	if (rc == RC_OK && (rc = pg_members(pg, now_of, 1, r)) != RC_OK)
		record_free(r->record);
	return rc;
}

/* Gives no job, but the time of the next one. */
static void
job_later(struct record *job)
{
	const int64_t at = job->queued_at;

	record_free(job);
	memset(job, 0, sizeof(*job));
	job->queued_at = at;
}

/*
 * After a job was lost to another process, the same job may still be first,
 * because that process has not committed yet.  So the next read steps over as
 * many jobs as were lost in a row.
 */
enum rc
postgres_job_next(struct store *s, struct record *job)
{
	struct job_read r = { .s = s, .record = job };
	enum rc rc;

	memset(job, 0, sizeof(*job));
	r.skip = atomic_load(&s->jobs_lost);
	rc = txn_run(s->pool, TXN_LOOK, run_job_next, &r);
	if (r.skip > 0 &&
	    (rc == RC_NOTFOUND || (rc == RC_OK && job->queued_at > r.now))) {
		record_free(job);
		r.skip = 0;
		atomic_store(&s->jobs_lost, 0);
		rc = txn_run(s->pool, TXN_LOOK, run_job_next, &r);
	}
	if (rc != RC_OK || job->queued_at <= r.now)
		return rc;
	job_later(job);
	return RC_NOTFOUND;
}

/* --- start: a worker takes the lease of an accepted key ------------------- */

struct job_start {
	const struct store *s;
	const struct record *job;
	const struct store_reservation *what;
	struct store_lease *lease;
};

static enum rc
run_start(struct pg *pg, void *arg)
{
	struct job_start *st = arg;
	const struct store_reservation *what = st->what;
	struct store_lease *lease = st->lease;
	enum rc rc = postgres_place_may_begin_by(pg);

	memset(lease, 0, sizeof(*lease));
	if (rc != RC_OK)
		return rc;
	uuid_digits(lease->token);
	lease->id = st->job->id;
	lease->attempt = st->job->attempt + 1;
	pg_send(pg, PG_QUERY_JOB_START, "idsii?i?izzz", lease->id,
	    st->job->attempt, lease->token, st->s->owner, what->lease,
	    what->on_crash == CONF_CRASH_RESUME, what->retention,
	    what->on_expired == CONF_EXPIRED_GONE, rows_expired_retention(what),
	    rows_lock(what->attempt), rows_lock_file(what->attempt),
	    what->reconcile_delay);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "uf", lease->downstream,
		    sizeof(lease->downstream), lease->recovery_point,
		    sizeof(lease->recovery_point));
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

enum rc
postgres_job_start(struct store *s, const struct record *job,
    const struct store_reservation *what, struct store_lease *lease)
{
	const enum record_state from =
	    job->attempt == 0 ? RECORD_PENDING : RECORD_FAILED_RETRYABLE;
	struct job_start st = { s, job, what, lease };
	enum rc rc;

	memset(lease, 0, sizeof(*lease));
	if (!s->keeper || !store_check_reservation(what, true) ||
	    !record_may_change(from, RECORD_IN_PROGRESS, false))
		return RC_INVALID;
	if ((rc = postgres_place_may_begin(s, NULL)) != RC_OK)
		return rc;
	rc = postgres_write(s, run_start, &st);
	if (rc == RC_PENDING) {
		postgres_keeper_release(s, lease, what->retention, 0);
		rc = RC_IO;
	}
	if (rc == RC_LOST)
		atomic_fetch_add(&s->jobs_lost, 1);
	else
		atomic_store(&s->jobs_lost, 0);
	return rc;
}
