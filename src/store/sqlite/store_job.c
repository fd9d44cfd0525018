/*
 * The key store, for requests that are accepted now and run later: the queue,
 * and the status resource.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "store_impl.h"
#include "store_row.h"

void
store_job_free(struct store_job *job)
{
	free(job->scope);
	free(job->path);
	free(job->key);
	memset(job, 0, sizeof(*job));
}

static enum rc
read_job(struct db_stmt *s, struct store_job *job)
{
	enum rc rc;

	job->id = db_column_int(s, 0);
	job->attempt = (int)db_column_int(s, 1);
	if (!store_row_copy(s, 5, job->resource, sizeof(job->resource)) ||
	    !store_row_is_count(s, 1) || !store_row_is_identity(s, 2, 3, 4) ||
	    !store_row_is_time(s, 6) || !store_row_is_time(s, 7))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 2, &job->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &job->path)) == RC_OK)
		rc = db_column_strdup(s, 4, &job->key);
	return rc;
}

static enum rc
next_job(struct store *store, enum query query, struct store_job *job)
{
	const int64_t now = store_now(store);
	struct store_reader *reader;
	struct db_stmt *s;
	int64_t due_at = 0;
	enum rc rc;

	memset(job, 0, sizeof(*job));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, query);
	db_bind_int(s, 1, now);
	while ((rc = db_step_row(s)) == RC_OK &&
	    (rc = read_job(s, job)) == RC_CORRUPT) {
		store_row_bad(reader->db, "once_key", job->id);
		store_job_free(job);
	}
	if (rc == RC_OK && (due_at = db_column_int(s, 7)) > now)
		rc = RC_NOTFOUND;
	db_reset(s);
	store_reader_give(store, reader);
	if (rc != RC_OK)
		store_job_free(job);
	job->due_at = due_at;
	return rc;
}

enum rc
store_job_next(struct store *store, struct store_job *job)
{
	return next_job(store, QUERY_JOB_NEXT, job);
}

enum rc
store_job_abandoned(struct store *store, struct store_job *job)
{
	return next_job(store, QUERY_JOB_ABANDONED, job);
}

bool
store_wait_work(struct store *store, uint64_t *generation, int64_t until_mono)
{
	return committer_wait_work(store->committer, generation, until_mono);
}

void
store_wake(struct store *store)
{
	committer_wake(store->committer);
}

/* --- the status resource -------------------------------------------------- */

void
store_status_free(struct store_status *st)
{
	free(st->scope);
	free(st->path);
	free(st->key);
	free(st->recovery_point);
	memset(st, 0, sizeof(*st));
}

static enum rc
read_status(
    const struct store *store, struct db_stmt *s, struct store_status *st)
{
	const char *state = db_column_text(s, 5);
	enum rc rc;

	st->id = db_column_int(s, 0);
	if (state == NULL || !record_state_parse(state, &st->state) ||
	    !store_row_is_identity(s, 1, 2, 3) || !store_row_is_count(s, 6) ||
	    !store_row_is_time(s, 10))
		return RC_CORRUPT;
	st->attempt = (int)db_column_int(s, 6);
	st->queued = db_column_int(s, 7) != 0;
	st->kept = db_column_int(s, 8) != 0;
	st->unsealed =
	    db_column_int(s, 9) != 0 && st->state == RECORD_COMPLETED;
	st->expires_store = db_column_int(s, 10);
	st->created_at = db_column_int(s, 11);
	st->updated_at = db_column_int(s, 12);
	if (st->expires_store != 0)
		st->expires_at = store_wall(store, st->expires_store);
	if ((rc = db_column_strdup(s, 1, &st->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 2, &st->path)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &st->key)) == RC_OK)
		rc = db_column_strdup(s, 4, &st->recovery_point);
	return rc;
}

enum rc
store_status(struct store *store, const char *resource, struct store_status *st)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	memset(st, 0, sizeof(*st));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_STATUS);
	db_bind_text(s, 1, resource);
	rc = db_step_row(s);
	if (rc == RC_OK)
		rc = read_status(store, s, st);
	if (rc == RC_CORRUPT && st->id != 0)
		store_row_bad(reader->db, "once_key", st->id);
	db_reset(s);
	store_reader_give(store, reader);
	if (rc != RC_OK)
		store_status_free(st);
	return rc;
}
