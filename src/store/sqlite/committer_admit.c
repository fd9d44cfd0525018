/*
 * Which operations the committer takes, and for how long their callers wait.
 */
#include "config.h"

#include "clock.h"
#include "committer_impl.h"

/* After the lock could not be had for busy_timeout: time for the thread to see
 * that it is free again (ms). */
#define GRACE 50

bool
committer_is_stuck(const struct committer *c)
{
	return c->health.overdue > 0 ||
	    c->health.unrecorded > COMMITTER_UNRECORDED;
}

void
committer_is_late(struct committer *c, struct op *op)
{
	if (!op->late)
		c->health.unrecorded++;
	op->late = true;
}

bool
committer_gave_up(const struct committer *c)
{
	return c->locked_at != 0 &&
	    clock_mono() - c->locked_at >= c->busy_timeout;
}

/* Requests that wait for an operation in the queue. */
static unsigned
waiting(const struct committer *c)
{
	const struct op *op;
	unsigned n = 0;

	for (op = c->queue.first; op != NULL; op = op->next)
		n += store_op_holds_request(op);
	return n;
}

/*
 * A request that waits for the lock of another process holds a worker, which
 * replays and health need too.
 */
enum rc
committer_refusal(const struct committer *c, const struct op *op)
{
	if (c->closing)
		return RC_CLOSED;
	if (store_op_is_new(op) && committer_is_stuck(c))
		return RC_UNRECORDED;
	if (c->locked_at != 0 && c->max_waiting != 0 &&
	    store_op_may_be_refused(op) && waiting(c) >= c->max_waiting)
		return RC_BUSY;
	return RC_OK;
}

int64_t
committer_patience(const struct committer *c, const struct op *op)
{
	return store_op_may_be_refused(op) && committer_gave_up(c) &&
		c->busy_timeout > GRACE
	    ? GRACE
	    : c->busy_timeout;
}
