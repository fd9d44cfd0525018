/*
 * What is due, in the loop; helpers look for it and run it.
 *
 *  1. There is one look at a time.  A helper claims an item of one kind, and
 *     comes back with it; then a helper runs it, and there is another look.
 *  2. While items run there are looks only where more work can be expected and
 *     may begin.  So a daemon without such work has one thread here, which runs
 *     maintenance.
 *  3. A program dies with the thread that started it (PR_SET_PDEATHSIG);
 *     helpers stay to the end.
 *  4. The kinds alternate: each look begins with the next kind.
 *
 * A timer is set for the time when something is due.  News end the wait: work
 * that the store has got, an item that has ended, a new configuration.  Work of
 * other processes makes no news.  Where the configuration has such work, the
 * store is polled for as long as the database is being written.  Then the
 * scheduler waits until it is written again.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "attention.h"
#include "clock.h"
#include "helpers.h"
#include "limit.h"
#include "maintenance.h"
#include "outbox.h"
#include "reconcile.h"
#include "work.h"
#include "scheduler.h"

/* Pause (ms) after a look that failed. */
#define FAILURE_PAUSE 500

/* Poll interval (ms), and how long after the last write (ms) polling goes on: a
 * commit is visible a sync later than its write. */
#define POLL_INTERVAL 500
#define POLL_AFTER    5000

enum { MAINTENANCE, RUNNER, RECONCILE, OUTBOX, ATTENTION, KINDS };

#define THREADS (2 + 2 * LIMIT_ASYNC_WORKERS + OUTBOX_PROGRAMS)

struct queue {
	const struct work_kind *kind;
	void *self;
	struct work_terms terms;
	int64_t look_at;  /* mono: the next look, if no news comes before */
	int64_t rests_to; /* mono: no look before that, whatever comes */
	bool found;       /* the last look found an item */
	enum rc failure;  /* of the last look, which is logged when it begins */
	unsigned running; /* items */
};

struct scheduler {
	struct store *store;
	struct scheduler_owner owner;
	struct loop *loop;
	struct helpers *helpers;
	struct conf *conf;
	struct queue queue[KINDS];
	bool shares; /* other processes may make work for this one */
	atomic_bool stop;
	unsigned first;        /* the kind to begin with */
	struct queue *looking; /* a look is under way; NULL: none */
	bool heard;            /* there was news meanwhile */
	unsigned running;      /* items of all kinds */
	struct loop_timer timer;
	struct loop_watch news;    /* store_news() */
	bool watched;              /* watch has been opened */
	int watch;                 /* of the database, or -1 */
	struct loop_watch written; /* of it, while nothing is polled */
	int64_t written_at; /* mono: when it was last seen to be written */
};

/* A look, and the item that it has claimed. */
struct item {
	struct helpers_task task;
	struct scheduler *scheduler;
	struct queue *queue;
	struct conf *conf; /* a reference */
	void *claimed;
	int64_t look_at;
	enum rc rc;
};

static void look_for_work(struct scheduler *s);

/* --- looking for work --------------------------------------------------- */

/* In a helper. */
static void
look_in_queue(struct helpers_task *t)
{
	struct item *item = OWNER(t, struct item, task);
	struct queue *q = item->queue;
	enum rc rc;

	item->look_at = clock_mono() + item->conf->sweep_interval;
	/* The stop may have come since the loop asked. */
	rc = atomic_load(&item->scheduler->stop)
	    ? RC_LOST
	    : q->kind->next(
		  q->self, item->conf, &item->claimed, &item->look_at);
	item->rc = rc;
	if (rc == RC_OK || rc == RC_NOTFOUND || rc == RC_LOST)
		rc = RC_OK;
	else if (rc != q->failure)
		maintenance_failed(item->scheduler->store, q->kind->name, rc);
	q->failure = rc;
}

/* News may concern each kind. */
static void
note_news(struct scheduler *s)
{
	struct queue *q;

	s->heard = true;
	for (q = s->queue; q < s->queue + KINDS; q++) {
		if (q->look_at > q->rests_to)
			q->look_at = q->rests_to;
	}
}

static void
item_run(struct helpers_task *t)
{
	struct item *item = OWNER(t, struct item, task);
	struct queue *q = item->queue;

	q->kind->run(q->self, item->conf, item->claimed);
}

static void
item_free(struct item *item)
{
	conf_unref(item->conf);
	free(item);
}

static void
item_ended(struct helpers_task *t)
{
	struct item *item = OWNER(t, struct item, task);
	struct scheduler *s = item->scheduler;

	item->queue->running--;
	s->running--;
	item_free(item);
	/* The kind may have been at its limit, or a topic of the outbox. */
	note_news(s);
	look_for_work(s);
}

/* Sets the time of the next look of that kind. */
static void
set_look(struct scheduler *s, const struct item *item)
{
	struct queue *q = item->queue;

	q->rests_to = q->look_at = clock_mono();
	/* If the item was lost, perhaps because a reload came meanwhile, the
	 * next look is by the configuration of that moment. */
	if (item->rc == RC_OK || item->rc == RC_LOST)
		return;
	if (item->rc == RC_NOTFOUND) {
		q->rests_to += q->kind->rest;
		q->look_at = s->heard ? q->rests_to : item->look_at;
	} else
		q->rests_to = q->look_at += FAILURE_PAUSE;
}

static void
look_ended(struct helpers_task *t)
{
	struct item *item = OWNER(t, struct item, task);
	struct scheduler *s = item->scheduler;

	s->looking = NULL;
	item->queue->found = item->rc == RC_OK;
	set_look(s, item);
	if (item->rc == RC_OK) {
		item->queue->running++;
		s->running++;
		item->task = (struct helpers_task){ .work = item_run,
			.done = item_ended };
		helpers_ask(s->helpers, &item->task);
	} else
		item_free(item);
	look_for_work(s);
}

static void
begin_look(struct scheduler *s, struct queue *q)
{
	struct item *item = calloc(1, sizeof(*item));

	if (item == NULL) {
		q->rests_to = q->look_at = clock_mono() + FAILURE_PAUSE;
		loop_set(s->loop, &s->timer, q->look_at);
		return;
	}
	item->task =
	    (struct helpers_task){ .work = look_in_queue, .done = look_ended };
	item->scheduler = s;
	item->queue = q;
	item->conf = conf_ref(s->conf);
	s->looking = q;
	s->heard = false;
	helpers_ask(s->helpers, &item->task);
}

/* --- waiting ------------------------------------------------------------ */

static void
read_watch(struct scheduler *s)
{
	enum rc rc = s->watch != -1 ? store_watch_read(s->watch) : RC_NOTFOUND;

	loop_unwatch(s->loop, &s->written);
	if (rc == RC_LOST) {
		close(s->watch);
		s->watch = -1;
	} else if (rc == RC_OK)
		s->written_at = clock_mono();
}

/* Waits until then (mono), or for news.  Work of this process is news, because
 * its commit may have been visible only long after it was written: a sync may
 * take longer than POLL_AFTER. */
static void
wait_for_news(struct scheduler *s, int64_t until)
{
	const int64_t now = clock_mono();

	if (s->shares) {
		if (!s->watched) {
			s->watched = true;
			s->watch = store_watch(s->store);
			s->written_at = now;
		}
		if ((s->watch == -1 || now < s->written_at + POLL_AFTER ||
			loop_watch(s->loop, &s->written, s->watch, EPOLLIN) !=
			    RC_OK) &&
		    until > now + POLL_INTERVAL)
			until = now + POLL_INTERVAL;
	}
	loop_set(s->loop, &s->timer, until);
}

static void
time_has_come(struct loop_timer *t)
{
	struct scheduler *s = OWNER(t, struct scheduler, timer);

	read_watch(s);
	if (s->shares)
		note_news(s);
	look_for_work(s);
}

static void
was_written(struct loop_watch *w, unsigned events)
{
	struct scheduler *s = OWNER(w, struct scheduler, written);

	(void)events;
	time_has_come(&s->timer);
}

/* With EPOLLET each write of an eventfd is told once, so nothing is read. */
static void
has_news(struct loop_watch *w, unsigned events)
{
	struct scheduler *s = OWNER(w, struct scheduler, news);

	(void)events;
	note_news(s);
	look_for_work(s);
}

/* Whether more work can be expected that may begin now. */
static bool
expects_more(const struct scheduler *s)
{
	const struct queue *q;

	for (q = s->queue; q < s->queue + KINDS; q++) {
		if (q->running < q->terms.limit &&
		    (q->found || q->terms.expected))
			return true;
	}
	return false;
}

/* Begins a look of a kind that may be due.  If none is, waits. */
static void
look_for_work(struct scheduler *s)
{
	const int64_t now = clock_mono();
	int64_t wake = INT64_MAX;
	struct queue *q;

	if (atomic_load(&s->stop) && scheduler_ended(s))
		s->owner.ended(s->owner.arg);
	if (atomic_load(&s->stop) || s->looking != NULL ||
	    (s->running > 0 && !expects_more(s)))
		return;
	for (unsigned i = 0; i < KINDS; i++) {
		q = &s->queue[(s->first + i) % KINDS];
		if (q->running >= q->terms.limit)
			continue;
		if (now >= q->look_at) {
			s->first = (s->first + i + 1) % KINDS;
			begin_look(s, q);
			return;
		}
		if (q->look_at < wake)
			wake = q->look_at;
	}
	wait_for_news(s, wake);
}

/* --- beginning and end -------------------------------------------------- */

/* Takes the terms of the kinds by the configuration. */
static void
queues_take_terms(struct scheduler *s)
{
	struct queue *q;

	s->shares = false;
	for (q = s->queue; q < s->queue + KINDS; q++) {
		q->terms = q->kind->terms(s->conf);
		s->shares = s->shares ||
		    (q->kind != &maintenance_kind && q->terms.expected);
	}
}

static enum rc
set_kinds(struct scheduler *s)
{
	static const struct work_kind *const kinds[KINDS] = {
		[MAINTENANCE] = &maintenance_kind,
		[RUNNER] = &runner_kind,
		[RECONCILE] = &reconcile_kind,
		[OUTBOX] = &outbox_kind,
		[ATTENTION] = &attention_kind,
	};
	void *maintenance = maintenance_new(s->store, &s->stop);
	void *outbox = outbox_new(s->store, &s->stop);

	for (int i = 0; i < KINDS; i++)
		s->queue[i] =
		    (struct queue){ .kind = kinds[i], .self = s->store };
	queues_take_terms(s);
	s->queue[MAINTENANCE].self = maintenance;
	s->queue[OUTBOX].self = outbox;
	return maintenance != NULL && outbox != NULL ? RC_OK : RC_NOMEM;
}

enum rc
scheduler_start(struct scheduler **out, struct conf *conf, struct store *store,
    const struct scheduler_owner *owner)
{
	struct scheduler *s = calloc(1, sizeof(*s));
	enum rc rc;

	*out = NULL;
	if (s == NULL)
		return RC_NOMEM;
	s->conf = conf_ref(conf);
	s->store = store;
	s->owner = *owner;
	s->loop = owner->loop;
	s->watch = -1;
	s->timer.due = time_has_come;
	s->news = (struct loop_watch){ .ready = has_news, .fd = -1 };
	s->written = (struct loop_watch){ .ready = was_written, .fd = -1 };
	attention_configure(conf, store);
	rc = set_kinds(s);
	if (rc == RC_OK)
		rc = helpers_open(&s->helpers, s->loop, "scheduler", THREADS);
	if (rc == RC_OK)
		rc = helpers_start(s->helpers);
	if (rc == RC_OK)
		rc = loop_watch(
		    s->loop, &s->news, store_news(store), EPOLLIN | EPOLLET);
	if (rc != RC_OK) {
		scheduler_free(s);
		return rc;
	}
	loop_set(s->loop, &s->timer, 0);
	*out = s;
	return RC_OK;
}

void
scheduler_reload(struct scheduler *s, struct conf *conf)
{
	struct conf *old = s->conf;

	s->conf = conf_ref(conf);
	conf_retire(old);
	conf_unref(old);
	queues_take_terms(s);
	attention_configure(conf, NULL);
	note_news(s);
	look_for_work(s);
}

void
scheduler_halt(struct scheduler *s)
{
	atomic_store(&s->stop, true);
}

bool
scheduler_ended(const struct scheduler *s)
{
	return atomic_load(&s->stop) && s->looking == NULL && s->running == 0;
}

void
scheduler_free(struct scheduler *s)
{
	if (s == NULL)
		return;
	helpers_close(s->helpers);
	loop_clear(s->loop, &s->timer);
	loop_unwatch(s->loop, &s->news);
	loop_unwatch(s->loop, &s->written);
	if (s->watch != -1)
		close(s->watch);
	maintenance_free(s->queue[MAINTENANCE].self);
	outbox_free(s->queue[OUTBOX].self);
	conf_unref(s->conf);
	free(s);
}
