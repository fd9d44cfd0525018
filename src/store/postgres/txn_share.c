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
wait_for_group(struct txn_pool *pool, struct txn_queue *q, struct txn_op *op)
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

static void
send_all(const struct txn_pool *pool, struct pg *pg, enum txn_kind kind,
    const struct txn_op *group, struct txn_group *common)
{
	for (; group != NULL; group = group->next)
		group->send(pg, group->arg, common);
	if (kind == TXN_WRITE) {
		txn_slot_stays(pool, pg);
		FAULT(COMMIT_READY);
		pg_commit_send(pg);
	}
}

struct group {
	const struct txn_pool *pool;
	enum txn_kind kind;
	struct txn_op *ops;
};

/* Sends all statements, of a transaction that writes in two round trips. */
static enum rc
send_group(struct pg *pg, const struct group *g)
{
	struct txn_group common = { 0 };
	enum rc rc = RC_OK;

	for (struct txn_op *op = g->ops; op != NULL; op = op->next)
		if (op->ask != NULL)
			op->ask(pg, op->arg);
	if (g->kind == TXN_WRITE && (rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "--mm", &common.now, &common.clock);
	if (rc != RC_OK)
		return rc;
	send_all(g->pool, pg, g->kind, g->ops, &common);
	return pg_sync(pg);
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

static enum rc
group_run(struct pg *pg, void *arg)
{
	const struct group *g = arg;
	enum rc rc = send_group(pg, g);

	if (g->kind == TXN_WRITE)
		FAULT(COMMIT_SENT);
	return rc == RC_OK ? read_all(pg, g->ops) : rc;
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
group_lead(struct txn_pool *pool, struct txn_queue *q, enum txn_kind kind,
    struct txn_op *op)
{
	struct group group = { pool, kind, op };
	struct txn_call call = { .kind = kind,
		.body = group_run,
		.arg = &group,
		.until = op->until,
		.shared = true };
	enum txn_shared how;
	struct txn_op *next;
	enum rc rc;

	lock_take(&pool->lock);
	op->next = queue_take(q, GROUP_MAX - 1);
	lock_give(&pool->lock);
	rc = txn_call_run(pool, &call, &how);
	tell_all(op, how, how == TXN_SHARED_ALONE ? RC_BUSY : rc);
	lock_take(&pool->lock);
	q->took = call.took;
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
		wait_for_group(pool, q, op);
	if (!op->ended)
		group_lead(pool, q, kind, op);
	sem_destroy(&op->wake);
	*how = op->how;
	return op->rc;
}
