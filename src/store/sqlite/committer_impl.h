/*
 * What the committer's callers and its thread share; nobody else includes it.
 */
#ifndef COMMITTER_IMPL_H
#define COMMITTER_IMPL_H

#include <pthread.h>
#include <time.h>

#include "committer.h"

/* n operations in order, linked by .next; take gives NULL when it is empty, and
 * remove says whether it was there. */
struct committer_list {
	struct op *first, **last;
	unsigned n;
};
void committer_list_init(struct committer_list *);
void committer_list_add(struct committer_list *, struct op *);
struct op *committer_list_take(struct committer_list *);
bool committer_list_remove(struct committer_list *, struct op *);

struct committer {
	struct db *db;
	struct store_share *share;
	struct store_guard *guard;
	int64_t shift, busy_timeout;
	uint64_t max_wal;
	unsigned max_waiting;
	pthread_t thread;

	pthread_mutex_t mutex;              /* guards what follows */
	pthread_cond_t work, settled, news; /* news: of work_generation */
	struct committer_list queue, later;
	bool closing;
	uint64_t generation, work_generation;
	struct committer_health health;
	unsigned expected; /* who may ask soon: see committer_gather.c */
	/* mono: the last try that had the lock; the first that had it not
	 * since then, or 0; and since when the same change is the last one in
	 * the database, or 0 */
	int64_t had_at, locked_at, still_at;

	/* the thread's own */
	bool tainted;
	uint64_t checkpoint_at;
	int64_t cut_at;    /* mono: when to try again */
	int64_t closed_at; /* mono: when closing was noticed, or 0 */
	int64_t took[2];   /* us: the last commits */
	int64_t version;   /* of the database, when others held the lock */
};

/* For waiting on a condition until then, ms of clock_mono(). */
struct timespec committer_timespec(int64_t mono);

/* What a caller is told, as who watches sees it; under the lock. */
enum rc committer_tell(struct committer *, enum rc);

/* So many outcomes that could not be recorded may be an accident; more of them
 * are a disk that takes no more. */
#define COMMITTER_UNRECORDED 8

/* Whether nothing new may begin before outcomes are recorded; under the lock.
 */
bool committer_is_stuck(const struct committer *);

/* A settlement could not be recorded at once; under the lock. */
void committer_is_late(struct committer *, struct op *);

/* Whether the lock was held by others for busy_timeout, so that it is not
 * waited for any more; under the lock. */
bool committer_gave_up(const struct committer *);

/* Whether another process holds the lock and does not get on; processes that
 * take turns with us commit now and then.  Under the lock. */
bool committer_is_held(const struct committer *);

/* The thread did not get the lock, for which it tried since then (mono);
 * whether committer_is_held().  And: it got it.  Without the lock. */
bool committer_missed_lock(struct committer *, int64_t since);
void committer_had_lock(struct committer *);

/* Why an operation is not even queued, or RC_OK; and how long its caller waits
 * (ms).  Under the lock. */
enum rc committer_refusal(const struct committer *, const struct op *);
int64_t committer_patience(const struct committer *, const struct op *);

/*
 * Takes from the queue what goes into the next transaction: all of it, but one
 * piece of a large answer at most, so that the rest need not wait for many.  A
 * large request goes alone, once it is the first.
 */
void committer_take_group(struct committer *, struct committer_list *group);

/* Moves those of a group that was committed, and of which a piece was stored,
 * back to the end of the queue.  Under the lock. */
void committer_put_back(struct committer *, struct committer_list *group);

/* Cuts a log that is too long, for us or for the disk, if nobody reads it.
 * RC_OK, or why there may be no reservations: see committer_health. */
enum rc committer_watch_log(struct committer *);

/* Moves the log into the database now and then; never while a caller waits for
 * what was just committed, and no operation fails by it. */
void committer_checkpoint(struct committer *);

/* Waits for more operations, where that is worth it; under the lock. */
void committer_gather(struct committer *);

/* A commit took that long. */
void committer_took(struct committer *, int64_t us);

void *committer_thread(void *);

#endif
