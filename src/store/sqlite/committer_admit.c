/*
 * Which writes the committer accepts, and how long their callers wait,
 * while another process holds the write lock.
 */
#include "config.h"

#include "clock.h"
#include "fault.h"
#include "committer_impl.h"

/*
 * How long a caller waits (ms) once the lock could not be taken for
 * busy_timeout: the thread needs this time to notice that the lock is free
 * again.
 */
#define GRACE 50

/*
 * Other oncewrap processes take turns with this one, and one of their commits
 * takes up to a second on a slow disk.  If the lock is held for longer (ms)
 * without a commit, at most max_waiting requests wait for it.
 */
#define STILL 1000

bool
committer_is_stuck(const struct committer *c)
{
	return c->health.overdue > 0 ||
	    c->health.unrecorded > COMMITTER_UNRECORDED;
}

void
committer_is_late(struct committer *c, struct write *w)
{
	if (!w->late)
		c->health.unrecorded++;
	w->late = true;
}

bool
committer_gave_up(const struct committer *c)
{
	return c->locked_at != 0 &&
	    clock_mono() - c->locked_at >= c->busy_timeout;
}

bool
committer_is_held(const struct committer *c)
{
	return c->still_at != 0 &&
	    (committer_gave_up(c) || clock_mono() - c->still_at >= STILL);
}

bool
committer_holds_request(const struct write *w)
{
	return (w->flags & WRITE_REFUSABLE) != 0 ||
	    ((w->flags & WRITE_FINISHES) != 0 && !w->is_left);
}

/* Counts the requests that wait for a write in the queue. */
static unsigned
waiting(const struct committer *c)
{
	const struct write *w;
	unsigned n = 0;

	for (w = c->queue.first; w != NULL; w = w->next)
		n += committer_holds_request(w);
	return n;
}

/*
 * A request that waits for the lock of another process holds a worker.  Replays
 * and health checks need workers too.
 */
enum rc
committer_refusal(const struct committer *c, const struct write *w)
{
	if (c->closing)
		return RC_CLOSED;
	if ((w->flags & WRITE_NEW) != 0 && committer_is_stuck(c))
		return RC_UNRECORDED;
	if (c->max_waiting != 0 && committer_is_held(c) &&
	    (w->flags & WRITE_REFUSABLE) != 0 && waiting(c) >= c->max_waiting)
		return RC_BUSY;
	return RC_OK;
}

int64_t
committer_patience(const struct committer *c, const struct write *w)
{
	const int64_t waited = w->since != 0 ? w->queued_at - w->since : 0;

	if ((w->flags & WRITE_REFUSABLE) != 0 && committer_gave_up(c) &&
	    c->busy_timeout > GRACE)
		return GRACE;
	return c->busy_timeout > waited ? c->busy_timeout - waited : 0;
}

void
committer_take_group(struct committer *c, struct write_list *group)
{
	bool large = false;
	struct write_list keep;
	struct write *w;

	write_list_init(group);
	write_list_init(&keep);
	lock_take(&c->lock);
	while ((w = write_list_take(&c->queue)) != NULL) {
		if ((w->flags & WRITE_LARGE) != 0 && large) {
			write_list_add(&keep, w);
			continue;
		}
		large |= (w->flags & WRITE_LARGE) != 0;
		w->stage = WRITE_BEGUN;
		write_list_add(group, w);
	}
	while ((w = write_list_take(&keep)) != NULL)
		write_list_add(&c->queue, w);
	lock_give(&c->lock);
}

/* Whether other connections have changed the database since the last call. */
static bool
others_commit(struct committer *c)
{
	const int64_t before = c->version;

	(void)db_onef(db_stmt(c->db, QUERY_DATA_VERSION), "i", &c->version);
	return c->version != before;
}

bool
committer_missed_lock(struct committer *c, int64_t since)
{
	bool commit = others_commit(c), held;

	lock_take(&c->lock);
	if (c->locked_at == 0)
		c->locked_at = since;
	if (c->still_at == 0 || commit)
		c->still_at = since;
	held = committer_is_held(c);
	lock_give(&c->lock);
	return held;
}

void
committer_had_lock(struct committer *c)
{
	lock_take(&c->lock);
	c->had_at = clock_mono();
	c->locked_at = c->still_at = 0;
	lock_give(&c->lock);
}
