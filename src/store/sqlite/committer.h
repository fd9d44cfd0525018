/*
 * All writes of a store go through the committer: one thread with the only
 * connection that writes.  The thread takes the write lock, runs all queued
 * writes one after the other, commits them together, and wakes their
 * callers.  Where syncs are slow it first waits a little for more writes.
 *
 * The failure of one write does not affect the others: a group that failed
 * is rolled back, and its writes are tried again singly.  A group has at
 * most one write that is WRITE_LARGE.
 */
#ifndef COMMITTER_H
#define COMMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "store_guard.h"
#include "share.h"
#include "write.h"

struct committer;

struct committer_options {
	struct db *db; /* db, share and guard stay the caller's */
	struct share *share;
	struct store_guard *guard;
	struct store_news *news;
	int64_t shift;        /* store time is clock_boot() + shift */
	int64_t busy_timeout; /* ms */
	uint64_t max_wal;     /* bytes */
	/* callers that may wait for the write lock while another process holds
	 * it and does not commit; 0: no limit */
	unsigned max_waiting;
};

enum rc
committer_start(struct committer **out, const struct committer_options *o);

/* Runs the queued writes, tries outcomes that failed once more, gives up
 * the rest, and frees the committer. */
void committer_stop(struct committer *c);

/*
 * Queues a write and waits until it is durable, or has failed and will not
 * appear; returns what its run returned.  RC_BUSY has three cases.  The lock
 * was not free within busy_timeout.  Or the write is WRITE_REFUSABLE,
 * max_waiting callers wait already, and the process that holds the lock has not
 * committed for a second: then the call returns at once.  Or the lock has not
 * been free for busy_timeout: then it returns almost at once.  RC_REPLACED,
 * RC_WENT_BACK: the database is not the one that was opened.  For WRITE_NEW
 * also RC_LIMIT: the write-ahead log is too long; and RC_UNRECORDED: outcomes
 * cannot be recorded.  RC_CLOSED: committer_stop() was called.
 *
 * An outcome is not given up: after busy_timeout the call returns RC_PENDING,
 * and the committer owns the write: see WRITE_FINISHES.
 */
enum rc committer_do(struct committer *c, struct write *w);

/* The health of writing, from the results that callers got. */
struct committer_health {
	enum rc last; /* the last write */
	/*
	 * why there are no reservations: RC_LIMIT, the log is longer than
	 * max_wal; RC_FULL, the disk has no room to move the log into the
	 * database; RC_UNRECORDED, outcomes cannot be recorded; else RC_OK
	 */
	enum rc closed;
	unsigned unrecorded; /* outcomes that failed, or took too long */
	unsigned overdue;    /* of these: took longer than busy_timeout */
	bool locked;         /* another process holds the write lock */
};
void committer_health(struct committer *c, struct committer_health *health);

#endif
