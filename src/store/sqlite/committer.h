/*
 * All writes of a store: one thread with the one connection that writes.  It
 * takes the lock, then whatever operations have queued up, one after the
 * other, then one COMMIT, and wakes who waits.  Where syncs are slow it waits a
 * little for more of them before that.
 *
 * One operation's failure stays its own: a group that failed is rolled back
 * and tried again singly.  Of large answers there is one piece in a group; it
 * is queued again for the next one.  A large request is a group of its own.
 */
#ifndef COMMITTER_H
#define COMMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "store_guard.h"
#include "store_ops.h"
#include "store_share.h"

struct committer;

struct committer_options {
	struct db *db; /* this, share and guard stay the caller's */
	struct store_share *share;
	struct store_guard *guard;
	int64_t shift;        /* store time is clock_boot() plus that */
	int64_t busy_timeout; /* ms */
	uint64_t max_wal;     /* bytes */
	/* callers that may wait for the write lock while another process holds
	 * it and does not commit; 0: any number */
	unsigned max_waiting;
};

enum rc committer_start(struct committer **, const struct committer_options *);

/* Runs what is queued, tries settlements that failed before once more, gives
 * up the rest, and frees it. */
void committer_stop(struct committer *);

/*
 * Queues an operation and waits until it is durable, or has failed and will
 * not appear; op->rc is returned.  RC_BUSY: no lock within busy_timeout; at
 * once, for an operation that a request waits for, if max_waiting callers wait
 * already and the process that has the lock has not committed for a second;
 * almost at once if the lock was not had for busy_timeout.
 * RC_REPLACED, RC_WENT_BACK: the database is not what was opened.
 * RC_LIMIT: a reservation, and the write-ahead log is too long.
 * RC_UNRECORDED: a reservation, and outcomes cannot be recorded.  RC_CLOSED:
 * committer_stop() was called.
 *
 * A settlement is not given up: after busy_timeout the answer is RC_PENDING,
 * and the operation is the committer's, which will store_op_release() and
 * free() it.
 */
enum rc committer_do(struct committer *, struct op *);

/* How writing goes, as callers were told. */
struct committer_health {
	enum rc last; /* the last operation */
	/* why there are no reservations: RC_LIMIT, the log is longer than
	 * max_wal; RC_FULL, it could not be moved into the database any more;
	 * RC_UNRECORDED, outcomes cannot be recorded; else RC_OK */
	enum rc closed;
	unsigned unrecorded; /* settlements that failed, or took too long */
	unsigned overdue;    /* those that took longer than busy_timeout */
	bool locked;         /* another process holds the write lock */
};
void committer_health(struct committer *, struct committer_health *);

/* See store_wait(), store_wait_work() and store_wake(). */
bool committer_wait(struct committer *, uint64_t *generation, int64_t until);
bool
committer_wait_work(struct committer *, uint64_t *generation, int64_t until);
void committer_wake(struct committer *);

#endif
