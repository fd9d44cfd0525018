/*
 * Helpers.
 *
 * The queues are the loop's own.  A thread gets a task by a semaphore of its
 * own, and comes back to the loop with the message that its task is done.
 */
#include "config.h"

#include <assert.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "thread.h"

#include "helpers.h"

/* Stack (bytes): enough for what the calls below need. */
#define STACK_SIZE (256 * 1024)

/* Tasks that wait, in their order. */
struct queue {
	struct helpers_task *first, **end;
};

struct helpers_thread {
	struct helpers *helpers;
	struct helpers_thread *next; /* that is free */
	struct helpers_task *task;   /* NULL: it is to end */
	sem_t given;                 /* .task is there */
	pthread_t thread;
};

struct helpers {
	struct loop *loop;
	const char *name;
	unsigned most, n;
	struct queue first, others;
	struct helpers_thread *free; /* the one that worked last is first */
	struct helpers_thread thread[];
};

/* The next task, or NULL. */
static struct helpers_task *
next_task(struct helpers *h)
{
	struct queue *q = h->first.first != NULL ? &h->first : &h->others;
	struct helpers_task *t = q->first;

	if (t != NULL && (q->first = t->next) == NULL)
		q->end = &q->first;
	return t;
}

static void
give_task(struct helpers_thread *by, struct helpers_task *t)
{
	if (t != NULL)
		t->by = by;
	by->task = t;
	sem_post(&by->given);
}

static void
set_free(struct helpers_thread *by)
{
	by->next = by->helpers->free;
	by->helpers->free = by;
}

static void
task_done(struct loop_message *m)
{
	struct helpers_task *t = OWNER(m, struct helpers_task, message);
	struct helpers_thread *by = t->by;
	struct helpers_task *next;

	if (by != NULL && (next = next_task(by->helpers)) != NULL)
		give_task(by, next);
	else if (by != NULL)
		set_free(by);
	t->done(t);
}

static void *
helpers_main(void *arg)
{
	struct helpers_thread *by = arg;
	struct helpers_task *t;

	for (;;) {
		while (sem_wait(&by->given) == -1)
			continue; /* EINTR */
		if ((t = by->task) == NULL)
			return NULL;
		t->work(t);
		loop_send(by->helpers->loop, &t->message);
	}
}

/* A thread that is free, or a new one; NULL: there is none. */
static struct helpers_thread *
free_thread(struct helpers *h)
{
	struct helpers_thread *by = h->free;
	int error;

	if (by != NULL) {
		h->free = by->next;
		return by;
	}
	if (h->n == h->most)
		return NULL;
	by = &h->thread[h->n];
	by->helpers = h;
	sem_init(&by->given, 0, 0);
	error =
	    thread_start(&by->thread, h->name, STACK_SIZE, helpers_main, by);
	if (error == 0) {
		h->n++;
		return by;
	}
	sem_destroy(&by->given);
	log_event(LOG_ERROR, "thread-not-started", NULL,
	    LOG_S("thread", h->name), LOG_S("why", strerror(error)));
	return NULL;
}

void
helpers_ask(struct helpers *h, struct helpers_task *t)
{
	struct queue *q = t->first ? &h->first : &h->others;
	struct helpers_thread *by = free_thread(h);

	t->by = NULL;
	t->message.come = task_done;
	t->next = NULL;
	if (by != NULL)
		give_task(by, t);
	else if (h->n > 0) {
		*q->end = t;
		q->end = &t->next;
	} else {
		t->work(t);
		loop_send(h->loop, &t->message);
	}
}

enum rc
helpers_start(struct helpers *h)
{
	struct helpers_thread *by = free_thread(h);

	if (by == NULL)
		return RC_NOMEM;
	set_free(by);
	return RC_OK;
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
	return RC_OK;
}

void
helpers_close(struct helpers *h)
{
	unsigned n = 0;

	if (h == NULL)
		return;
	for (; h->free != NULL; h->free = h->free->next, n++)
		give_task(h->free, NULL);
	assert(n == h->n);
	for (unsigned i = 0; i < h->n; i++) {
		(void)pthread_join(h->thread[i].thread, NULL);
		sem_destroy(&h->thread[i].given);
	}
	free(h);
}
