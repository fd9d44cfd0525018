/*
 * Groups: operations of several threads in one transaction.
 *
 * A thread that finds no group under way, or many operations for each, leads
 * one: it takes what has queued up, sends all statements and the COMMIT
 * together, reads the results of each operation, and wakes their threads.
 * Operations that come meanwhile wait for the next group, which the first of
 * them leads, or one that has waited for long.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>

#include "clock.h"
#include "fault.h"
#include "txn_impl.h"

/* Operations of a group. */
#define GROUP_MAX 64

/* While groups are under way, another one begins only if so many operations
 * wait for each of them: a commit costs more than a short wait. */
#define WAITING_EACH 4

/* The pause (ms) after which an operation that waits begins another group, too:
 * the connection of those under way may be dead. */
#define WAITING_LONG 4

/* If a group takes so long (ms), the server or its disk is far, and is not kept
 * busy by one group: another one begins at once. */
#define FAR 10

/* --- the queue, under the pool's lock ------------------------------------- */

static void
queue_add(struct txn_queue *q, struct txn_op *op)
{
	op->next = NULL;
	*(q->first != NULL ? &q->last->next : &q->first) = op;
	q->last = op;
	q->waiting++;
}

/* The first ones, at most n, as a list. */
static struct txn_op *
queue_take(struct txn_queue *q, int n)
{
	struct txn_op *const list = q->first, **end = &q->first;

	for (; n > 0 && *end != NULL; n--) {
		end = &(*end)->next;
		q->waiting--;
	}
	if (end == &q->first)
		return NULL;
	q->first = *end;
	*end = NULL;
	return list;
}

static bool
queue_remove(struct txn_queue *q, struct txn_op *op)
{
	struct txn_op **at = &q->first, *before = NULL;

	for (; *at != NULL && *at != op; at = &before->next)
		before = *at;
	if (*at == NULL)
		return false;
	*at = op->next;
	if (q->last == op)
		q->last = before;
	q->waiting--;
	return true;
}

/* --- waiting -------------------------------------------------------------- */

/* Waits until the operation has ended, or must lead a group. */
static void
wait_for_turn(struct txn_pool *pool, struct txn_queue *q, struct txn_op *op)
{
	bool leads;

	if (clock_wait_mono(&op->wake, clock_mono() + WAITING_LONG))
		return;
	lock_take(&pool->lock);
	leads = q->groups < q->most && queue_remove(q, op);
	if (leads)
		q->groups++;
	lock_give(&pool->lock);
	while (!leads && sem_wait(&op->wake) == -1 && errno == EINTR)
		;
}

/* --- one group ------------------------------------------------------------ */

static bool
asks(const struct txn_op *group)
{
	while (group != NULL && group->ask == NULL)
		group = group->next;
	return group != NULL;
}

/* Begins the transaction, and asks what is to be read first. */
static void
send_first(struct txn_pool *pool, struct txn_slot *s, enum txn_kind kind,
    const struct txn_op *group)
{
	if (kind == TXN_LOOK) {
		txn_slot_check(pool, s);
		return;
	}
	pg_begin(s->pg);
	pg_send(s->pg, PG_QUERY_SESSION_SHARE, "iidi", pool->owner, pool->epoch,
	    s->number, s->seq + 1);
	for (; group != NULL; group = group->next)
		if (group->ask != NULL)
			group->ask(s->pg, group->arg);
}

static void
send_all(struct txn_pool *pool, struct txn_slot *s, enum txn_kind kind,
    const struct txn_op *group, struct txn_group *common)
{
	for (; group != NULL; group = group->next)
		group->send(s->pg, group->arg, common);
	if (kind == TXN_WRITE) {
		txn_slot_stays(pool, s);
		FAULT(COMMIT_READY);
		pg_commit_send(s->pg);
	}
}

static enum rc
read_common(struct pg *pg, struct txn_group *common)
{
	return pg_one(pg, "--mm", &common->now, &common->clock);
}

/* Sends all statements of the transaction, in one round trip or two. */
static enum rc
send_group(struct txn_pool *pool, struct txn_slot *s, enum txn_kind kind,
    const struct txn_op *group)
{
	const bool two = kind == TXN_WRITE && asks(group);
	struct txn_group common = { 0 };
	enum rc rc = RC_OK;

	send_first(pool, s, kind, group);
	if (two && (rc = pg_sync(s->pg)) == RC_OK)
		rc = read_common(s->pg, &common);
	if (rc != RC_OK)
		return rc;
	send_all(pool, s, kind, group, &common);
	if ((rc = pg_sync(s->pg)) == RC_OK && kind == TXN_WRITE && !two)
		rc = read_common(s->pg, &common);
	return rc;
}

static enum rc
read_all(struct pg *pg, struct txn_op *group)
{
	for (; group != NULL; group = group->next) {
		group->rc = group->read(pg, group->arg);
		if (pg_failure(pg) != PG_NONE)
			return RC_IO;
		group->was_read = true;
	}
	return RC_OK;
}

/* An operation whose time is over has no time to be tried alone. */
static void
tell_all(struct txn_op *group, enum txn_shared how, enum rc rc)
{
	const int64_t now = clock_mono();
	struct txn_op *const leader = group;

	for (; group != NULL; group = group->next) {
		group->how = how;
		if (how == TXN_SHARED_ALONE && now >= group->until)
			group->how = TXN_SHARED_FAILED;
		if (how == TXN_SHARED_DONE && !group->was_read)
			group->how = TXN_SHARED_UNREAD;
		if (how != TXN_SHARED_DONE)
			group->rc = rc;
		leader->committed +=
		    how == TXN_SHARED_DONE && group->rc == RC_OK;
	}
}

/* The COMMIT was perhaps sent, and there is no answer to it. */
static void
after_loss(struct txn_pool *pool, struct txn_slot *s, struct txn_op *group,
    int64_t until)
{
	bool done = false;
	enum rc rc;

	s->pending = true;
	rc = txn_slot_look_up(pool, s, until, &done);
	if (rc != RC_OK)
		tell_all(group, TXN_SHARED_FAILED, rc);
	else
		tell_all(
		    group, done ? TXN_SHARED_DONE : TXN_SHARED_ALONE, RC_BUSY);
}

static void
run_group(struct txn_pool *pool, struct txn_slot *s, enum txn_kind kind,
    struct txn_op *group, int64_t until)
{
	enum rc rc;

	rc = txn_slot_ready(pool, s, until, kind == TXN_WRITE);
	if (rc != RC_OK) {
		tell_all(group, TXN_SHARED_FAILED, rc);
		return;
	}
	pg_set_deadline(s->pg, until + TXN_GRACE);
	rc = send_group(pool, s, kind, group);
	if (kind == TXN_WRITE)
		FAULT(COMMIT_SENT);
	if (rc == RC_OK)
		rc = read_all(s->pg, group);
	if (rc == RC_OK && kind == TXN_WRITE) {
		rc = pg_commit_result(s->pg);
		FAULT(COMMIT_DONE);
	}
	if (rc == RC_OK) {
		s->seq += kind == TXN_WRITE;
		tell_all(group, TXN_SHARED_DONE, RC_OK);
	} else if (pg_failure(s->pg) == PG_WENT_BACK) {
		tell_all(group, TXN_SHARED_FAILED, txn_slot_went_back(pool, s));
	} else if (pg_failure(s->pg) != PG_LOST) {
		if (kind == TXN_WRITE)
			pg_rollback(s->pg);
		tell_all(group, TXN_SHARED_ALONE, RC_BUSY);
	} else if (kind == TXN_WRITE) {
		after_loss(pool, s, group, until);
	} else {
		txn_slot_fail(pool, s);
		tell_all(group, TXN_SHARED_ALONE, RC_BUSY);
	}
}

/* --- leading it ----------------------------------------------------------- */

static void
wake_others(struct txn_op *leader)
{
	struct txn_op *op, *next;

	/* An operation is gone when its thread wakes. */
	for (op = leader->next; op != NULL; op = next) {
		next = op->next;
		op->ended = true;
		sem_post(&op->wake);
	}
}

/* The thread has counted itself in q->groups. */
static void
lead(struct txn_pool *pool, struct txn_queue *q, enum txn_kind kind,
    struct txn_op *op)
{
	int64_t took = 0;
	struct txn_op *next;
	struct txn_slot *s;
	enum rc rc;

	lock_take(&pool->lock);
	op->next = queue_take(q, GROUP_MAX - 1);
	lock_give(&pool->lock);
	rc = txn_slot_take(pool, op->until, &s);
	if (rc == RC_OK) {
		took = clock_mono();
		run_group(pool, s, kind, op, op->until);
		took = clock_mono() - took;
		if (op->how != TXN_SHARED_DONE && s->pg != NULL)
			txn_set_message(pool, pg_message(s->pg));
		txn_slot_give(pool, s);
	} else
		tell_all(op, TXN_SHARED_FAILED, rc);
	lock_take(&pool->lock);
	q->took = took;
	next = queue_take(q, 1);
	if (next == NULL)
		q->groups--;
	lock_give(&pool->lock);
	if (next != NULL)
		sem_post(&next->wake);
	wake_others(op);
}

enum rc
txn_share(struct txn_pool *pool, enum txn_kind kind, struct txn_op *op,
    enum txn_shared *how)
{
	struct txn_queue *q;
	bool leads;

	assert(kind == TXN_LOOK || (kind == TXN_WRITE && pool->owner != 0));
	q = kind == TXN_WRITE ? &pool->writes : &pool->looks;
	*how = TXN_SHARED_FAILED;
	if (pool->went_back)
		return RC_WENT_BACK;
	op->until = clock_mono() + pool->busy_timeout;
	op->ended = op->was_read = false;
	op->committed = 0;
	sem_init(&op->wake, 0, 0);
	lock_take(&pool->lock);
	leads = q->groups < q->most &&
	    (q->took >= FAR || q->waiting >= q->groups * WAITING_EACH);
	if (leads)
		q->groups++;
	else
		queue_add(q, op);
	lock_give(&pool->lock);
	if (!leads)
		wait_for_turn(pool, q, op);
	if (!op->ended)
		lead(pool, q, kind, op);
	sem_destroy(&op->wake);
	*how = op->how;
	return op->rc;
}
