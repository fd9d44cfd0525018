/*
 * The committer's interface for its callers.  The invariants are those of
 * committer_thread.c.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "leader.h"
#include "log.h"
#include "metrics.h"
#include "thread.h"
#include "committer_impl.h"

/* How often (ms) a caller looks whether a write that was begun has ended. */
#define LOOK 1000

enum rc
committer_start(struct committer **out, const struct committer_options *o)
{
	struct committer *c;
	int error;

	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->db = o->db;
	c->share = o->share;
	c->guard = o->guard;
	c->shift = o->shift;
	c->busy_timeout = o->busy_timeout;
	c->max_wal = o->max_wal;
	c->max_waiting = o->max_waiting;
	c->news = o->news;
	write_list_init(&c->queue);
	write_list_init(&c->later);
	lock_init(&c->lock, LOCK_COMMITTER);
	lock_cond_init(&c->work);

	error = thread_start(
	    &c->thread, "committer", THREAD_STACK, committer_thread, c);
	if (error != 0) {
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("message", "no thread"), LOG_I("errno", error));
		pthread_cond_destroy(&c->work);
		lock_destroy(&c->lock);
		free(c);
		return RC_NOMEM;
	}
	*out = c;
	return RC_OK;
}

void
committer_stop(struct committer *c)
{
	if (c == NULL)
		return;
	lock_take(&c->lock);
	c->closing = true;
	pthread_cond_signal(&c->work);
	lock_give(&c->lock);
	pthread_join(c->thread, NULL);
	assert(c->queue.first == NULL && c->later.first == NULL);
	pthread_cond_destroy(&c->work);
	lock_destroy(&c->lock);
	free(c);
}

enum rc
committer_note(struct committer *c, enum rc rc)
{
	c->health.last = rc == RC_LOST ? RC_OK : rc;
	if (c->health.last != RC_OK)
		metrics_count(METRICS_STORE_ERRORS);
	return rc;
}

void
committer_health(struct committer *c, struct committer_health *health)
{
	lock_take(&c->lock);
	*health = c->health;
	if (committer_is_stuck(c))
		health->closed = RC_UNRECORDED;
	health->locked = c->locked_at != 0 &&
	    (committer_gave_up(c) || c->health.last == RC_BUSY);
	lock_give(&c->lock);
}

/*
 * Handles a caller that has waited until then (mono).  Returns whether it still
 * has to wait, until the new *until: the write is being run, or was run since
 * and has more to write.
 */
static bool
withdraw(struct committer *c, struct write *w, int64_t *until, enum rc *rc)
{
	const int64_t now = clock_mono();
	int64_t patience;
	bool wait = true;

	lock_take(&c->lock);
	patience = committer_patience(c, w);
	if (w->stage != WRITE_DONE && w->queued_at + patience > now)
		*until = w->queued_at + patience;
	else if (w->stage != WRITE_DONE && (w->flags & WRITE_FINISHES) != 0) {
		w->is_left = true;
		c->health.overdue++;
		committer_is_late(c, w);
		*rc = committer_note(c, RC_PENDING);
		wait = false;
	} else if (w->stage == WRITE_QUEUED) {
		write_list_remove(&c->queue, w);
		/* The committer first tried for the lock a little after
		 * that. */
		if (c->had_at < w->queued_at && c->locked_at > w->queued_at)
			c->locked_at = w->queued_at;
		*rc = w->rc = committer_note(c, RC_BUSY);
		wait = false;
	} else
		*until = now + LOOK;
	lock_give(&c->lock);
	return wait;
}

static enum rc
committer_ask(struct committer *c, struct write *w)
{
	int64_t until;
	enum rc rc;

	FAULT(OP_ASKED);
	lock_take(&c->lock);
	if ((rc = committer_refusal(c, w)) != RC_OK) {
		if (rc != RC_CLOSED)
			(void)committer_note(c, rc);
		lock_give(&c->lock);
		return rc;
	}
	w->queued_at = clock_mono();
	until = w->queued_at + committer_patience(c, w);
	w->stage = WRITE_QUEUED;
	write_list_add(&c->queue, w);
	lock_give(&c->lock);
	pthread_cond_signal(&c->work);
	FAULT(OP_IN_QUEUE);
	do {
		if (clock_wait_mono(&w->wake, until) && atomic_load(&w->told))
			return w->rc;
	} while (withdraw(c, w, &until, &rc));
	return rc;
}

enum rc
committer_do(struct committer *c, struct write *w)
{
	enum rc rc;

	assert(((w->flags & WRITE_FINISHES) != 0) == (w->left != NULL));
	leader_yield();
	sem_init(&w->wake, 0, 0);
	atomic_store(&w->told, false);
	w->is_left = w->late = false;
	w->retry_at = w->pause = 0;
	rc = committer_ask(c, w);
	if (rc != RC_PENDING)
		sem_destroy(&w->wake);
	return rc;
}
