/*
 * The committer's thread.  Invariants:
 *
 *   1. An operation is on at most one list.  Under the lock its stage says
 *      which: queued (queue, or later), begun (the thread's), done (none).
 *   2. A caller withdraws only a queued operation.  The thread takes
 *      operations after it has the write lock of the database, so an operation
 *      that its caller withdraws has usually not begun.
 *   3. A COMMIT that failed may leave its frames in the write-ahead log, whole
 *      and unsynced, and they may come back when the log is read after a
 *      crash.  While that is possible (`tainted`) no caller is told that
 *      nothing was written: first a good commit must write over the frames.
 *      If none succeeds within busy_timeout, the lease that may come back is
 *      one of a dead process, which makes its key unknown: never free.
 *   4. A settlement fails only by RC_LOST, or because the process ends.
 *   5. While another process holds the write lock, the thread goes on trying
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

/* The length of one try for the lock, and the pauses between tries of a
 * settlement that failed (ms). */
#define SLICE       50
#define PAUSE_FIRST 50
#define PAUSE_LAST  1000

/* Frees an operation that its caller has left. */
static void
end_left(struct op *op)
{
	log_event(op->rc == RC_OK ? LOG_INFO : LOG_ERROR, "late-settlement",
	    NULL, LOG_I("id", op->settle.settlement.id),
	    LOG_S("result", rc_text(op->rc)));
	store_op_release(op);
	free(op);
}

/*
 * Wakes the callers of these operations, without the lock: each of them would
 * only wait for it.  From then on the operation belongs to its caller again.
 */
static void
tell(struct committer *c, struct committer_list *group)
{
	/* The handler's run is over, and it may have made work in the
	 * outbox. */
	bool said = atomic_load(&c->share->used);
	bool settled = false, news = false;
	struct op *op;

	pthread_mutex_lock(&c->mutex);
	committer_put_back(c, group);
	for (op = group->first; op != NULL; op = op->next) {
		op->stage = OP_DONE;
		if (op->rc == RC_OK && store_op_has_settled(op)) {
			settled = true;
			news |= said;
		}
		news |= op->rc == RC_OK && store_op_makes_work(op);
		c->health.unrecorded -= op->late;
		c->health.overdue -= op->left;
		if (!op->left)
			(void)committer_tell(c, op->rc);
	}
	c->expected = group->n + c->queue.n;
	c->generation += settled;
	c->work_generation += news;
	if (settled)
		pthread_cond_broadcast(&c->settled);
	if (news)
		pthread_cond_broadcast(&c->news);
	pthread_mutex_unlock(&c->mutex);
	while ((op = committer_list_take(group)) != NULL) {
		if (op->left)
			end_left(op);
		else {
			atomic_store(&op->told, true);
			sem_post(&op->wake);
		}
		FAULT(COMMIT_TOLD);
	}
}

static void
finish(struct committer *c, struct op *op, enum rc rc)
{
	struct committer_list one;

	op->rc = rc;
	committer_list_init(&one);
	committer_list_add(&one, op);
	tell(c, &one);
}

/* Queues a failed settlement for a later try. */
static void
postpone(struct committer *c, struct op *op)
{
	op->pause = op->pause == 0 ? PAUSE_FIRST : op->pause * 2;
	if (op->pause > PAUSE_LAST)
		op->pause = PAUSE_LAST;
	pthread_mutex_lock(&c->mutex);
	op->retry_at = clock_mono() + op->pause;
	op->stage = OP_QUEUED;
	committer_is_late(c, op);
	committer_list_add(&c->later, op);
	pthread_mutex_unlock(&c->mutex);
}

static void
fail(struct committer *c, struct op *op, enum rc rc)
{
	if (op->kind == OP_SETTLE) {
		if (rc == RC_FULL && op->pause != 0 && store_op_drop_answer(op))
			op->pause = 0;
		postpone(c, op);
	} else
		finish(c, op, rc);
}

static int64_t
store_time(const struct committer *c)
{
	return clock_boot() + c->shift;
}

/* Runs the operations in a transaction.  RC_LOST is a result, and no reason to
 * roll back. */
static enum rc
run_one(struct committer *c, struct op *op)
{
	op->rc = store_op_run(op, c->db, store_time(c));
	FAULT(COMMIT_OP);
	return op->rc == RC_LOST ? RC_OK : op->rc;
}

/* Commits; rolls back if rc is not RC_OK or the COMMIT fails. */
static enum rc
end(struct committer *c, enum rc rc)
{
	uint64_t before = db_commits(c->db);
	int64_t begun;

	if (rc == RC_OK) {
		FAULT(COMMIT_READY);
		begun = clock_mono_us();
		rc = db_commit(c->db);
		FAULT(COMMIT_DONE);
		if (rc != RC_OK)
			c->tainted = true;
		else if (db_commits(c->db) != before) {
			c->tainted = false;
			committer_took(c, clock_mono_us() - begun);
		}
	}
	if (rc != RC_OK)
		db_rollback(c->db);
	return rc;
}

/*
 * Before a COMMIT that depends on changes by other connections, makes those
 * durable.  A reader of a sealed record takes it to be durable; and if the row
 * of an effect were lost, so would be the record of its try.
 */
static enum rc
harden(struct committer *c, const struct op *op)
{
	enum rc rc;

	for (; op != NULL; op = op->next)
		if (store_op_hardens(op))
			break;
	if (op == NULL)
		return RC_OK;
	FAULT(HARDEN_BEFORE);
	rc = db_harden(c->db);
	FAULT(HARDEN_AFTER);
	return rc;
}

/* Runs a transaction, if the database is still the one that was opened. */
static enum rc
begin(struct committer *c)
{
	enum rc rc;

	if ((rc = store_guard_check(c->guard)) != RC_OK ||
	    (rc = db_begin(c->db)) != RC_OK)
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
	rc = begin(c);
	db_set_busy_timeout(c->db, SLICE);
	return rc;
}

/* Invariant 3: commits, to write over the frames of a failed COMMIT. */
static void
clean(struct committer *c)
{
	int64_t until = clock_mono() + c->busy_timeout;
	struct op op;
	enum rc rc;

	store_op_init(&op, OP_CLOCK);
	op.clock.touch = true;
	while (c->tainted) {
		rc = begin(c);
		if (rc == RC_OK)
			rc = end(c, run_one(c, &op));
		if (rc == RC_OK || clock_mono() >= until)
			break;
		usleep(20000);
	}
	store_op_release(&op);
}

/* Runs each operation alone.  One that fails now fails closed. */
static void
run_singly(struct committer *c, struct committer_list *group)
{
	struct committer_list failed, one;
	struct op *op;
	int64_t until;
	enum rc rc;

	until = clock_mono() + c->busy_timeout;
	committer_list_init(&failed);
	while ((op = committer_list_take(group)) != NULL) {
		rc = begin_until(c, until);
		if (rc == RC_OK) {
			committer_list_init(&one);
			committer_list_add(&one, op);
			rc = run_one(c, op);
			if (rc == RC_OK)
				rc = harden(c, one.first);
			rc = end(c, rc);
		}
		if (rc == RC_OK) {
			metrics_observe(METRICS_COMMIT_BATCH, 1);
			tell(c, &one);
		} else {
			op->rc = rc;
			committer_list_add(&failed, op);
		}
	}
	if (failed.first == NULL)
		return;
	clean(c);
	while ((op = committer_list_take(&failed)) != NULL)
		fail(c, op, op->rc);
}

/* Runs a group and commits it.  The write lock is held. */
static void
run_group(struct committer *c, struct committer_list *group)
{
	struct op *op;
	enum rc rc = RC_OK;
	int n = 0;

	for (op = group->first; op != NULL && rc == RC_OK; op = op->next, n++)
		rc = run_one(c, op);
	if (rc == RC_OK)
		rc = harden(c, group->first);
	rc = end(c, rc);
	if (rc == RC_OK) {
		metrics_observe(METRICS_COMMIT_BATCH, n);
		tell(c, group);
		return;
	}
	if (group->first->next != NULL)
		run_singly(c, group);
	else {
		clean(c);
		op = committer_list_take(group);
		fail(c, op, rc);
	}
	if (rc == RC_FULL) /* truncates the log that it grew */
		(void)db_checkpoint(c->db, true);
}

/* Which queued operations fail. */
enum victims { ALL, NEW, CROWD };

/* Fails queued operations: all; or new ones; or those that requests wait for
 * beyond max_waiting. */
static void
fail_queue(struct committer *c, enum rc rc, enum victims victims)
{
	struct committer_list all, keep;
	struct op *op;
	unsigned n = 0;

	committer_list_init(&keep);
	pthread_mutex_lock(&c->mutex);
	committer_list_init(&all);
	while ((op = committer_list_take(&c->queue)) != NULL) {
		n += store_op_holds_request(op);
		if ((victims == NEW && !store_op_is_new(op)) ||
		    (victims == CROWD &&
			(n <= c->max_waiting || !store_op_may_be_refused(op))))
			committer_list_add(&keep, op);
		else {
			op->stage = OP_BEGUN;
			committer_list_add(&all, op);
		}
	}
	while ((op = committer_list_take(&keep)) != NULL)
		committer_list_add(&c->queue, op);
	pthread_mutex_unlock(&c->mutex);
	while ((op = committer_list_take(&all)) != NULL)
		fail(c, op, rc);
}

/* Whether there may be reservations. */
static void
watch(struct committer *c)
{
	enum rc closed = committer_watch_log(c);

	pthread_mutex_lock(&c->mutex);
	c->health.closed = closed;
	if (committer_is_stuck(c))
		closed = RC_UNRECORDED;
	pthread_mutex_unlock(&c->mutex);
	if (closed != RC_OK)
		fail_queue(c, closed, NEW);
}

/* Records that another process has held the write lock since then (mono). */
static void
wait_for_lock(struct committer *c, int64_t since)
{
	bool held = committer_missed_lock(c, since);

	store_share_blocked(c->share);
	if (held && c->max_waiting != 0)
		fail_queue(c, RC_BUSY, CROWD);
}

/* Puts settlements back into the queue if their pause is over.  *wake is the
 * end of the next pause (mono), or 0.  Under the lock. */
static void
requeue(struct committer *c, int64_t *wake)
{
	struct committer_list waiting;
	struct op *op;
	int64_t now = clock_mono();

	*wake = 0;
	committer_list_init(&waiting);
	while ((op = committer_list_take(&c->later)) != NULL) {
		if (c->closing || op->retry_at <= now) {
			committer_list_add(&c->queue, op);
			continue;
		}
		if (*wake == 0 || op->retry_at < *wake)
			*wake = op->retry_at;
		committer_list_add(&waiting, op);
	}
	while ((op = committer_list_take(&waiting)) != NULL)
		committer_list_add(&c->later, op);
}

/* Waits for work.  False: there is none, and the committer is stopping. */
static bool
wait_for_work(struct committer *c)
{
	struct timespec ts;
	int64_t wake;
	bool more;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		if (c->closing && c->closed_at == 0) {
			c->closed_at = clock_mono();
			requeue(c, &wake);
		} else if (!c->closing)
			requeue(c, &wake);
		if (c->queue.first != NULL || c->closing || c->locked_at != 0)
			break;
		if (wake == 0)
			pthread_cond_wait(&c->work, &c->mutex);
		else {
			ts = committer_timespec(wake);
			pthread_cond_timedwait(&c->work, &c->mutex, &ts);
		}
	}
	more = c->queue.first != NULL || !c->closing;
	if (c->queue.first != NULL)
		committer_gather(c);
	pthread_mutex_unlock(&c->mutex);
	return more;
}

void *
committer_thread(void *arg)
{
	struct committer *c = arg;
	struct committer_list group;
	struct op *op;
	int64_t since;
	enum rc rc;

	db_set_busy_timeout(c->db, SLICE);
	while (wait_for_work(c)) {
		FAULT(COMMIT_IDLE);
		watch(c);
		since = clock_mono();
		rc = begin(c);
		if (rc == RC_BUSY &&
		    (c->closed_at == 0 ||
			clock_mono() - c->closed_at < c->busy_timeout)) {
			wait_for_lock(c, since);
			continue;
		}
		committer_had_lock(c);
		if (rc != RC_OK) {
			fail_queue(c, rc, ALL);
			continue;
		}
		FAULT(COMMIT_BEGUN);
		store_share_locked(c->share);
		committer_take_group(c, &group);
		if (group.first == NULL)
			db_rollback(c->db);
		else
			run_group(c, &group);
		store_share_unlocked(c->share);
		committer_checkpoint(c);
	}
	/* The settlements that failed once more. */
	while ((op = committer_list_take(&c->later)) != NULL)
		finish(c, op, RC_IO);
	return NULL;
}
