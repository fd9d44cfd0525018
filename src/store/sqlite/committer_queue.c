/*
 * The committer's interface for its callers, and its queue: which writes it
 * accepts, and how long their callers wait, while another process holds the
 * write lock.  The invariants are those of committer_thread.c.
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
#include "log.h"
#include "metrics.h"
#include "thread.h"
#include "committer_impl.h"

/* How often (ms) a caller looks whether a write that was begun has ended. */
#define LOOK 1000

/*
 * How long a caller waits (ms) once the lock could not be taken for
 * busy_timeout: the thread needs this time to notice that the lock is free
 * again.
 */
#define GRACE 50

/* --- lists ---------------------------------------------------------------- */

void
committer_list_init(struct committer_list *l)
{
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
}

void
committer_list_add(struct committer_list *l, struct write *w)
{
	w->next = NULL;
	*l->last = w;
	l->last = &w->next;
	l->n++;
}

struct write *
committer_list_take(struct committer_list *l)
{
	struct write *w = l->first;

	if (w == NULL)
		return NULL;
	l->n--;
	l->first = w->next;
	if (l->first == NULL)
		l->last = &l->first;
	w->next = NULL;
	return w;
}

bool
committer_list_remove(struct committer_list *l, struct write *w)
{
	struct write **p;

	for (p = &l->first; *p != NULL; p = &(*p)->next) {
		if (*p != w)
			continue;
		l->n--;
		*p = w->next;
		if (l->last == &w->next)
			l->last = p;
		return true;
	}
	return false;
}

/* --- which writes are accepted -------------------------------------------- */

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

enum rc
committer_refusal(const struct committer *c, const struct write *w)
{
	if (c->closing)
		return RC_CLOSED;
	if ((w->flags & WRITE_NEW) != 0 && committer_is_stuck(c))
		return RC_UNRECORDED;
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
committer_take_group(struct committer *c, struct committer_list *group)
{
	bool large = false;
	struct committer_list keep;
	struct write *w;

	committer_list_init(group);
	committer_list_init(&keep);
	lock_take(&c->lock);
	while ((w = committer_list_take(&c->queue)) != NULL) {
		if ((w->flags & WRITE_LARGE) != 0 && large) {
			committer_list_add(&keep, w);
			continue;
		}
		large |= (w->flags & WRITE_LARGE) != 0;
		w->state = WRITE_BEGUN;
		committer_list_add(group, w);
	}
	while ((w = committer_list_take(&keep)) != NULL)
		committer_list_add(&c->queue, w);
	lock_give(&c->lock);
}

void
committer_missed_lock(struct committer *c, int64_t since)
{
	lock_take(&c->lock);
	if (c->locked_at == 0)
		c->locked_at = since;
	lock_give(&c->lock);
}

void
committer_had_lock(struct committer *c)
{
	lock_take(&c->lock);
	c->had_at = clock_mono();
	c->locked_at = 0;
	lock_give(&c->lock);
}

/* --- its callers ---------------------------------------------------------- */

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
	c->distrusted = o->distrusted;
	c->news = o->news;
	committer_list_init(&c->queue);
	committer_list_init(&c->later);
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

/* The write is being run, or was run since and has more to write: its caller
 * still has to wait. */
bool
committer_late(
    struct committer *c, struct write *w, int64_t *until, enum rc *rc)
{
	const int64_t now = clock_mono();
	int64_t patience;
	bool wait = true;

	lock_take(&c->lock);
	patience = committer_patience(c, w);
	if (w->state != WRITE_DONE && w->queued_at + patience > now)
		*until = w->queued_at + patience;
	else if (w->state != WRITE_DONE && (w->flags & WRITE_FINISHES) != 0) {
		w->is_left = true;
		c->health.overdue++;
		committer_is_late(c, w);
		*rc = committer_note(c, RC_PENDING);
		wait = false;
	} else if (w->state == WRITE_QUEUED) {
		committer_list_remove(&c->queue, w);
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

/* Queues a write.  *until is the time (mono) at which it is late. */
static enum rc
committer_ask(struct committer *c, struct write *w, int64_t *until)
{
	enum rc rc;

	assert(((w->flags & WRITE_FINISHES) != 0) == (w->left != NULL));
	FAULT(OP_ASKED);
	atomic_store(&w->told, false);
	w->is_left = w->late = false;
	w->retry_at = w->pause = 0;
	lock_take(&c->lock);
	if ((rc = committer_refusal(c, w)) != RC_OK) {
		if (rc != RC_CLOSED)
			(void)committer_note(c, rc);
		lock_give(&c->lock);
		return rc;
	}
	w->queued_at = clock_mono();
	*until = w->queued_at + committer_patience(c, w);
	w->state = WRITE_QUEUED;
	committer_list_add(&c->queue, w);
	lock_give(&c->lock);
	pthread_cond_signal(&c->work);
	FAULT(OP_IN_QUEUE);
	return RC_OK;
}

enum rc
committer_submit(
    struct committer *c, struct write *w, struct loop *loop, int64_t *until)
{
	w->loop = loop;
	return committer_ask(c, w, until);
}

enum rc
committer_do(struct committer *c, struct write *w)
{
	int64_t until;
	enum rc rc;

	w->loop = NULL;
	sem_init(&w->wake, 0, 0);
	if ((rc = committer_ask(c, w, &until)) == RC_OK)
		do {
			if (clock_wait_mono(&w->wake, until) &&
			    atomic_load(&w->told)) {
				rc = w->rc;
				break;
			}
		} while (committer_late(c, w, &until, &rc));
	if (rc != RC_PENDING)
		sem_destroy(&w->wake);
	return rc;
}
