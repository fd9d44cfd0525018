/*
 * Helpers.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lock.h"
#include "log.h"
#include "thread.h"

#include "helpers.h"

/* Stack (bytes): enough for what the calls below need. */
#define STACK_SIZE (256 * 1024)

/* Tasks that wait, in their order. */
struct queue {
	struct helpers_task *first, **end;
};

struct helpers {
	struct loop *loop;
	const char *name;
	unsigned most, n;
	unsigned tasks; /* the loop's */
	struct lock lock;
	pthread_cond_t asked;
	struct queue first, others;
	unsigned free; /* threads that wait */
	bool closing;
	pthread_t thread[];
};

static void
task_done(struct loop_message *m)
{
	struct helpers_task *t = (struct helpers_task *)(void *)((char *)m -
	    offsetof(struct helpers_task, message));

	t->helpers->tasks--;
	t->done(t);
}

/* The next task, or NULL; with the lock. */
static struct helpers_task *
next_task(struct helpers *h)
{
	struct queue *q = h->first.first != NULL ? &h->first : &h->others;
	struct helpers_task *t = q->first;

	if (t != NULL && (q->first = t->next) == NULL)
		q->end = &q->first;
	return t;
}

static void *
helpers_main(void *arg)
{
	struct helpers *h = arg;
	struct helpers_task *t;

	lock_take(&h->lock);
	for (;;) {
		while ((t = next_task(h)) == NULL && !h->closing) {
			h->free++;
			lock_wait(&h->lock, &h->asked, LOCK_FOREVER);
			h->free--;
		}
		if (t == NULL)
			break;
		lock_give(&h->lock);
		t->work(t);
		loop_send(h->loop, &t->message);
		lock_take(&h->lock);
	}
	lock_give(&h->lock);
	return NULL;
}

/* Whether a thread is there. */
static bool
have_thread(struct helpers *h, bool more)
{
	int error;

	if (!more || h->n == h->most)
		return h->n > 0;
	error = thread_start(
	    &h->thread[h->n], h->name, STACK_SIZE, helpers_main, h);
	if (error == 0)
		h->n++;
	else
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("thread", h->name), LOG_S("why", strerror(error)));
	return h->n > 0;
}

void
helpers_ask(struct helpers *h, struct helpers_task *t)
{
	struct queue *q = t->first ? &h->first : &h->others;
	bool more;

	t->helpers = h;
	t->message.come = task_done;
	t->next = NULL;
	h->tasks++;
	lock_take(&h->lock);
	more =
	    h->free == 0 || h->first.first != NULL || h->others.first != NULL;
	lock_give(&h->lock);
	if (!have_thread(h, more)) {
		t->work(t);
		loop_send(h->loop, &t->message);
		return;
	}
	lock_take(&h->lock);
	*q->end = t;
	q->end = &t->next;
	lock_give(&h->lock);
	pthread_cond_signal(&h->asked);
}

unsigned
helpers_tasks(const struct helpers *h)
{
	return h->tasks;
}

enum rc
helpers_open(
    struct helpers **out, struct loop *l, const char *name, unsigned most)
{
	struct helpers *h = calloc(1, sizeof(*h) + most * sizeof(h->thread[0]));

	*out = h;
	if (h == NULL)
		return RC_NOMEM;
	h->loop = l;
	h->name = name;
	h->most = most;
	h->first.end = &h->first.first;
	h->others.end = &h->others.first;
	lock_init(&h->lock, LOCK_HELPERS);
	lock_cond_init(&h->asked);
	return RC_OK;
}

void
helpers_close(struct helpers *h)
{
	if (h == NULL)
		return;
	assert(h->tasks == 0);
	lock_take(&h->lock);
	h->closing = true;
	lock_give(&h->lock);
	pthread_cond_broadcast(&h->asked);
	for (unsigned i = 0; i < h->n; i++)
		(void)pthread_join(h->thread[i], NULL);
	pthread_cond_destroy(&h->asked);
	lock_destroy(&h->lock);
	free(h);
}
