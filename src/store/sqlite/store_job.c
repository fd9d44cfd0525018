/*
 * The key store, for requests that are accepted now and run later: the queue.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "store_impl.h"
#include "store_row.h"

enum rc
sqlite_job_next(struct store *store, struct record *job)
{
	struct store_reader *reader;
	int64_t at;
	enum rc rc;

	memset(job, 0, sizeof(*job));
	rc = store_reader_query(store, QUERY_JOB_NEXT, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "i", sqlite_now(store));
	rc = store_row_next(reader->db, reader->s, job);
	store_reader_give(store, reader);
	if (rc != RC_OK || job->queued_at <= sqlite_now(store))
		return rc;
	at = job->queued_at;
	record_free(job);
	memset(job, 0, sizeof(*job));
	job->queued_at = at;
	return RC_NOTFOUND;
}

bool
sqlite_wait_work(struct store *store, uint64_t *generation, int64_t until_mono)
{
	return committer_wait_work(store->committer, generation, until_mono);
}

void
sqlite_wake(struct store *store)
{
	committer_wake(store->committer);
}

void
sqlite_news_to(struct store *store, int fd)
{
	committer_news_to(store->committer, fd);
}
