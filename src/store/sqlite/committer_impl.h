/*
 * Private to the committer's files: what its callers and its thread share.
 */
#ifndef COMMITTER_IMPL_H
#define COMMITTER_IMPL_H

#include <pthread.h>

#include "lock.h"
#include "store_ops.h"
#include "committer.h"

/* n writes in order, linked by .next.  take returns NULL if the list is empty;
 * remove returns whether the write was in it. */
struct committer_list {
	struct write *first, **last;
	unsigned n;
};
void committer_list_init(struct committer_list *l);
void committer_list_add(struct committer_list *l, struct write *w);
struct write *committer_list_take(struct committer_list *l);
bool committer_list_remove(struct committer_list *l, struct write *w);

struct committer {
	struct db *db;
	struct share *share;
	struct store_guard *guard;
	int64_t shift, busy_timeout;
	uint64_t max_wal;
	pthread_t thread;
	int news; /* store_news() */

	struct lock lock; /* guards what follows */
	pthread_cond_t work;
	struct committer_list queue, later;
	bool closing;
	struct committer_health health;
	unsigned expected; /* callers that may return: committer_disk.c */
	/* mono: the last successful try for the lock; the first failed try
	 * since then, or 0 */
	int64_t had_at, locked_at;

	/* used by the thread only */
	bool tainted;
	bool distrusted; /* the log: see invariant 4 */
	bool again;      /* the open transaction has a write with TX_AGAIN */
	uint64_t checkpoint_at;
	bool sealed;       /* by a commit since the last checkpoint */
	int64_t cut_at;    /* mono: when to try again */
	int64_t closed_at; /* mono: when closing was noticed, or 0 */
	int64_t took[2];   /* us: the last commits */
};

/* Records a result for health reporting, and returns it; under the lock. */
enum rc committer_note(struct committer *c, enum rc rc);

/* Up to this many unrecorded outcomes may be an accident; more of them mean
 * that the disk accepts no more writes. */
#define COMMITTER_UNRECORDED 8

/* Whether nothing new may begin until outcomes are recorded; under the lock. */
bool committer_is_stuck(const struct committer *c);

/* Counts an outcome that could not be recorded at once; under the lock. */
void committer_is_late(struct committer *c, struct write *w);

/* Whether other processes have held the lock for busy_timeout, so that no
 * caller waits for it any more; under the lock. */
bool committer_gave_up(const struct committer *c);

/* The thread reports that it has tried for the write lock in vain since then
 * (mono); or that it has the lock.  Called without the committer's lock. */
void committer_missed_lock(struct committer *c, int64_t since);
void committer_had_lock(struct committer *c);

/* The reason why a write is not even queued, or RC_OK; and how long its
 * caller waits (ms).  Under the lock. */
enum rc committer_refusal(const struct committer *c, const struct write *w);
int64_t committer_patience(const struct committer *c, const struct write *w);

/*
 * Takes the writes of the next transaction from the queue: all of them, but
 * at most one that is WRITE_LARGE, so that the others do not wait for several.
 */
void committer_take_group(struct committer *c, struct committer_list *group);

/*
 * Truncates a log that is too long for max_wal or for the disk, unless a
 * connection is reading it.  RC_OK, or why there may be no reservations: see
 * committer_health.
 */
enum rc committer_watch_log(struct committer *c);

/* Moves the log into the database, if that is what was opened; truncate: and
 * begins it anew, unless a connection is reading it (RC_BUSY).  Keeps
 * `distrusted`. */
enum rc committer_move_log(struct committer *c, bool truncate);

/* Whether the log is so long that the next commit sets a seal. */
bool committer_is_log_long(struct committer *c);

/* Moves the log into the database after a commit that has set a seal.  It never
 * does so while a caller waits for that commit, and a failure affects no
 * write. */
void committer_checkpoint(struct committer *c);

/* Waits for more writes, if that saves syncs; under the lock. */
void committer_gather(struct committer *c);

/* Records how long a commit took (us). */
void committer_took(struct committer *c, int64_t us);

void *committer_thread(void *arg);

#endif
