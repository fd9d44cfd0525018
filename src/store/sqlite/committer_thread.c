/*
 * The committer's thread.  Invariants:
 *
 *   1. A write is on at most one list.  Under the lock its state says which:
 *      queued (queue, or later), begun (the thread's), done (none).
 *   2. A caller withdraws only a queued write.  The thread takes writes after
 *      it has the write lock of the database, so a write that its caller
 *      withdraws has usually not begun.
 *   3. A COMMIT that failed may leave its frames in the write-ahead log, whole
 *      and unsynced, and they may come back when the log is read after a
 *      crash.  While that is possible (`tainted`) no caller is told that
 *      nothing was written: first a good commit must write over the frames.
 *      If none succeeds within busy_timeout, the lease that may come back is
 *      one of a dead process, which makes its key unknown: never free.
 *   4. After a sync that failed, what other processes had written to the log
 *      unsynced may be lost, though later syncs succeed; and with a frame that
 *      is lost go all behind it.  So before the next transaction the log is
 *      moved into the database, and begins anew.
 *   5. An outcome fails only by RC_LOST, or because the process ends.
 *   6. While another process holds the write lock, the thread goes on trying
 *      for it even if nothing is queued: the results of callers depend on
 *      locked_at.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "committer_impl.h"

/* The length of one try for the lock, and the pauses between tries of an
 * outcome that failed (ms). */
#define SLICE       50
#define PAUSE_FIRST 50
#define PAUSE_LAST  1000

/*
 * Wakes the callers of these writes, without the lock: each of them would
 * only wait for it.  From then on the write belongs to its caller again.
 */
static void
wake_callers(struct committer *c, struct committer_list *group)
{
	/* The handler's run is over, and it may have made work in the
	 * outbox. */
	bool said = atomic_load(&c->share->base->shared);
	bool ended = false, news = false;
	struct write *w;

	lock_take(&c->lock);
	for (w = group->first; w != NULL; w = w->next) {
		w->state = WRITE_DONE;
		if (w->rc == RC_OK) {
			ended |= (w->did & TX_ENDED) != 0;
			news |= (w->did & TX_WORK) != 0;
		}
		c->health.unrecorded -= w->late;
		c->health.overdue -= w->is_left;
		if (!w->is_left)
			(void)committer_note(c, w->rc);
	}
	c->expected = group->n + c->queue.n;
	lock_give(&c->lock);
	if (news || (ended && said))
		store_news_made(c->news);
	while ((w = committer_list_take(group)) != NULL) {
		if (w->is_left) {
			if (w->loop == NULL)
				sem_destroy(&w->wake);
			w->left(w);
		} else if (w->loop != NULL) {
			loop_send(w->loop, &w->message);
		} else {
			atomic_store(&w->told, true);
			sem_post(&w->wake);
		}
		FAULT(COMMIT_TOLD);
	}
}

static void
thread_finish(struct committer *c, struct write *w, enum rc rc)
{
	struct committer_list one;

	w->rc = rc;
	committer_list_init(&one);
	committer_list_add(&one, w);
	wake_callers(c, &one);
}

/* Queues a failed outcome for a later try. */
static void
postpone_group(struct committer *c, struct write *w)
{
	w->pause = w->pause == 0 ? PAUSE_FIRST : w->pause * 2;
	if (w->pause > PAUSE_LAST)
		w->pause = PAUSE_LAST;
	lock_take(&c->lock);
	w->retry_at = clock_mono() + w->pause;
	w->state = WRITE_QUEUED;
	committer_is_late(c, w);
	committer_list_add(&c->later, w);
	lock_give(&c->lock);
}

static void
thread_fail(struct committer *c, struct write *w, enum rc rc)
{
	if ((w->flags & WRITE_FINISHES) == 0 || rc == RC_LOST) {
		thread_finish(c, w, rc);
		return;
	}
	if (rc == RC_FULL && w->pause != 0 && (w->did & WRITE_NO_ROOM) == 0) {
		w->did |= WRITE_NO_ROOM;
		w->pause = 0;
	}
	postpone_group(c, w);
}

static int64_t
store_time(const struct committer *c)
{
	return clock_boot() + c->shift;
}

/* Runs a write in a transaction.  RC_LOST is a result, and no reason to roll
 * back unless the run has changed something. */
static enum rc
run_one(struct committer *c, struct write *w)
{
	const int64_t before = db_changes(c->db);

	w->did &= ~(unsigned)WRITE_DID;
	w->rc = w->run(w, c->db, store_time(c));
	c->again |= (w->did & TX_AGAIN) != 0;
	FAULT(COMMIT_OP);
	if (w->rc == RC_LOST && db_changes(c->db) == before)
		return RC_OK;
	return w->rc;
}

/* Commits; rolls back if rc is not RC_OK or the COMMIT fails. */
static enum rc
thread_end(struct committer *c, enum rc rc)
{
	bool move = committer_is_log_long(c);
	uint64_t before = db_commits(c->db);
	int64_t begun;

	if (rc == RC_OK && (move || c->again))
		rc = store_guard_seal(c->guard, c->db, move);
	if (rc == RC_OK)
		rc = store_guard_base(c->guard, c->db, &move);
	if (rc == RC_OK)
		rc = store_guard_note(c->guard, c->db);
	if (rc == RC_OK) {
		FAULT(COMMIT_READY);
		begun = clock_mono_us();
		rc = db_commit(c->db);
		FAULT(COMMIT_DONE);
		if (rc == RC_OK)
			rc = store_guard_mapped(c->guard);
		if (rc == RC_OK)
			store_guard_commit(c->guard, c->db);
		if (rc != RC_OK) {
			c->tainted = true;
			c->distrusted |= rc == RC_IO;
		} else if (db_commits(c->db) != before) {
			c->tainted = false;
			c->sealed |= move;
			committer_took(c, clock_mono_us() - begun);
		}
	}
	c->again = false;
	if (rc != RC_OK)
		db_rollback(c->db);
	if (rc == RC_CORRUPT &&
	    store_guard_file(c->guard, c->db) == RC_WENT_BACK)
		rc = RC_WENT_BACK;
	return rc;
}

/*
 * Before a COMMIT that depends on changes by other connections, makes those
 * durable.  A reader of a confirmed record takes it to be durable.
 */
static enum rc
sync_foreign_commits(struct committer *c, const struct write *w)
{
	enum rc rc;

	for (; w != NULL; w = w->next)
		if ((w->did & TX_SYNC_FIRST) != 0)
			break;
	if (w == NULL)
		return RC_OK;
	FAULT(HARDEN_BEFORE);
	rc = db_sync_foreign_commits(c->db);
	FAULT(HARDEN_AFTER);
	return rc;
}

/* Invariant 4. */
static enum rc
begin_log(struct committer *c)
{
	enum rc rc = c->distrusted ? committer_move_log(c, true) : RC_OK;

	if (rc == RC_BUSY) /* a reader needs the log as it is */
		usleep(PAUSE_FIRST * 1000);
	return rc;
}

/*
 * Begins a transaction, if the database is still the one that was opened.
 * Writes to a file without a name are lost when this process ends; and if other
 * processes do not see its lock, they recover its leases while it lives.
 */
static enum rc
thread_begin(struct committer *c)
{
	enum rc rc;

	if ((rc = store_guard_check(c->guard)) != RC_OK ||
	    (rc = begin_log(c)) != RC_OK || (rc = db_begin(c->db)) != RC_OK)
		return rc;
	rc = store_guard_past(c->guard, c->db);
	if (rc != RC_OK)
		db_rollback(c->db);
	return rc;
}

/* Waits for the lock until then (mono), at most for one slice. */
static enum rc
begin_until(struct committer *c, int64_t until)
{
	int64_t now = clock_mono();
	enum rc rc;

	db_set_busy_timeout(c->db, until - now > SLICE ? until - now : SLICE);
	rc = thread_begin(c);
	db_set_busy_timeout(c->db, SLICE);
	return rc;
}

/* Invariant 3: commits, to write over the frames of a failed COMMIT. */
static void
clean_log(struct committer *c)
{
	int64_t until = clock_mono() + c->busy_timeout;
	struct db_stmt *s;
	enum rc rc;

	while (c->tainted) {
		if ((rc = thread_begin(c)) == RC_OK) {
			s = db_stmt(c->db, QUERY_CLOCK_TOUCH);
			db_bindf(s, "i", store_time(c));
			rc = thread_end(c, db_step_done(s));
		}
		if (rc == RC_OK || rc == RC_WENT_BACK || clock_mono() >= until)
			break;
		usleep(20000);
	}
}

/* Runs a group and commits it.  The write lock is held.  On failure the group
 * is as it was. */
static enum rc
run_group(struct committer *c, struct committer_list *group)
{
	struct write *w;
	enum rc rc = RC_OK;

	for (w = group->first; w != NULL && rc == RC_OK; w = w->next)
		rc = run_one(c, w);
	if (rc == RC_OK)
		rc = sync_foreign_commits(c, group->first);
	rc = thread_end(c, rc);
	if (rc == RC_OK) {
		metrics_observe(METRICS_COMMIT_BATCH, group->n);
		wake_callers(c, group);
	}
	return rc;
}

/* Runs a write that was not run alone, or has met a damaged page and may go
 * round it. */
static enum rc
run_again(struct committer *c, struct write *w, int64_t until)
{
	struct committer_list one;
	enum rc rc = begin_until(c, until);

	committer_list_init(&one);
	committer_list_add(&one, w);
	return rc == RC_OK ? run_group(c, &one) : rc;
}

/* A group has failed: if it has several writes, runs each of them alone.  One
 * that fails alone fails closed.  Once others have kept the lock, or the log,
 * for busy_timeout, none waits for it again. */
static void
run_singly(struct committer *c, struct committer_list *group, enum rc rc)
{
	const int64_t until = clock_mono() + c->busy_timeout;
	const bool again = group->n > 1;
	struct committer_list failed;
	struct write *w;

	committer_list_init(&failed);
	while ((w = committer_list_take(group)) != NULL) {
		if (again && (rc != RC_BUSY || clock_mono() < until))
			rc = run_again(c, w, until);
		if (rc == RC_CORRUPT && (w->flags & WRITE_LEAVES) != 0 &&
		    (w->did & WRITE_DAMAGED) == 0) {
			w->did |= WRITE_DAMAGED;
			rc = run_again(c, w, until);
		}
		if (rc != RC_OK) {
			w->rc = rc;
			committer_list_add(&failed, w);
		}
	}
	if (failed.first == NULL)
		return;
	clean_log(c);
	while ((w = committer_list_take(&failed)) != NULL)
		thread_fail(c, w, w->rc);
}

/* Fails queued writes: all, or new ones. */
static void
fail_queue(struct committer *c, enum rc rc, bool all_of_them)
{
	struct committer_list all, keep;
	struct write *w;

	committer_list_init(&keep);
	lock_take(&c->lock);
	committer_list_init(&all);
	while ((w = committer_list_take(&c->queue)) != NULL) {
		if (!all_of_them && (w->flags & WRITE_NEW) == 0)
			committer_list_add(&keep, w);
		else {
			w->state = WRITE_BEGUN;
			committer_list_add(&all, w);
		}
	}
	while ((w = committer_list_take(&keep)) != NULL)
		committer_list_add(&c->queue, w);
	lock_give(&c->lock);
	while ((w = committer_list_take(&all)) != NULL)
		thread_fail(c, w, rc);
}

/* Whether there may be reservations. */
static void
thread_watch(struct committer *c)
{
	enum rc closed = committer_watch_log(c);

	lock_take(&c->lock);
	c->health.closed = closed;
	c->health.distrusted = c->distrusted;
	if (committer_is_stuck(c))
		closed = RC_UNRECORDED;
	lock_give(&c->lock);
	if (closed != RC_OK)
		fail_queue(c, closed, false);
}

/* Puts outcomes back into the queue if their pause is over.  *wake is the
 * end of the next pause (mono), or 0.  Under the lock. */
static void
requeue_due(struct committer *c, int64_t *wake)
{
	struct committer_list waiting;
	struct write *w;
	int64_t now = clock_mono();

	*wake = 0;
	committer_list_init(&waiting);
	while ((w = committer_list_take(&c->later)) != NULL) {
		if (c->closing || w->retry_at <= now) {
			committer_list_add(&c->queue, w);
			continue;
		}
		if (*wake == 0 || w->retry_at < *wake)
			*wake = w->retry_at;
		committer_list_add(&waiting, w);
	}
	while ((w = committer_list_take(&waiting)) != NULL)
		committer_list_add(&c->later, w);
}

/* Waits for work.  False: there is none, and the committer is stopping. */
static bool
wait_for_work(struct committer *c)
{
	int64_t wake;
	bool more;

	lock_take(&c->lock);
	for (;;) {
		if (c->closing && c->closed_at == 0) {
			c->closed_at = clock_mono();
			requeue_due(c, &wake);
		} else if (!c->closing)
			requeue_due(c, &wake);
		if (c->queue.first != NULL || c->closing || c->locked_at != 0)
			break;
		lock_wait(&c->lock, &c->work, wake != 0 ? wake : LOCK_FOREVER);
	}
	more = c->queue.first != NULL || !c->closing;
	if (c->queue.first != NULL)
		committer_gather(c);
	lock_give(&c->lock);
	return more;
}

void *
committer_thread(void *arg)
{
	struct committer *c = arg;
	struct committer_list group;
	struct write *w;
	int64_t since;
	enum rc rc;

	db_set_busy_timeout(c->db, SLICE);
	while (wait_for_work(c)) {
		FAULT(COMMIT_IDLE);
		thread_watch(c);
		since = clock_mono();
		rc = thread_begin(c);
		if (rc == RC_BUSY &&
		    (c->closed_at == 0 ||
			clock_mono() - c->closed_at < c->busy_timeout)) {
			committer_missed_lock(c, since);
			if (!c->distrusted)
				share_blocked(c->share);
			continue;
		}
		committer_had_lock(c);
		if (rc != RC_OK) {
			fail_queue(c, rc, true);
			continue;
		}
		FAULT(COMMIT_BEGUN);
		share_locked(c->share);
		committer_take_group(c, &group);
		if (group.first == NULL)
			db_rollback(c->db);
		else if ((rc = run_group(c, &group)) != RC_OK) {
			run_singly(c, &group, rc);
			if (rc == RC_FULL) /* truncates the log that it grew */
				(void)committer_move_log(c, true);
		}
		share_unlocked(c->share);
		committer_checkpoint(c);
	}
	/* The outcomes that failed once more. */
	while ((w = committer_list_take(&c->later)) != NULL)
		thread_finish(c, w, RC_IO);
	return NULL;
}
