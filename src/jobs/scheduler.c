/*
 * One pool of threads for all kinds of work.
 *
 *  1. At most one thread is the dispatcher: it sleeps until work may be due,
 *     and claims one item.  Then it hands that part on, and runs the item.
 *  2. The part is handed to a thread that waits.  If none waits, a thread is
 *     started, but only where more work can be expected and may begin.  So a
 *     daemon without such work has one thread here, which runs maintenance.
 *  3. A program dies with the thread that started it (PR_SET_PDEATHSIG).  So a
 *     thread ends only after scheduler_halt(), and after its item has run.
 *  4. The kinds alternate: each look begins with the next kind.
 *
 * The dispatcher sleeps until the time when something is due, or until there is
 * news: work that the store has got, an item that has ended, a new
 * configuration, or the stop.  Work of other processes makes no news.  Where
 * the configuration has such work, the dispatcher polls the store for as long
 * as the database is being written.  Then it sleeps until it is written again.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attention.h"
#include "clock.h"
#include "limit.h"
#include "lock.h"
#include "log.h"
#include "maintenance.h"
#include "outbox.h"
#include "reconcile.h"
#include "thread.h"
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
	/* used by the dispatcher */
	int64_t look_at;  /* mono: the next look, if no news comes before */
	int64_t rests_to; /* mono: no look before that, whatever comes */
	bool found;       /* the last look found an item */
	enum rc failure;  /* of the last look, which is logged when it begins */
	unsigned running; /* items; under the lock */
};

struct scheduler {
	struct store *store;
	struct queue queue[KINDS];
	atomic_bool stop;
	atomic_uint alive; /* threads that have not ended */
	/* used by the dispatcher */
	uint64_t generation;
	unsigned first;     /* the kind to begin with */
	bool watched;       /* watch has been opened */
	int watch;          /* of the database, or -1 */
	int64_t written_at; /* mono: when it was last seen to be written */

	int news; /* an eventfd(2): store_news_to() */

	struct lock lock; /* guards the members below */
	struct conf *conf;
	pthread_cond_t vacant;
	bool taken;    /* a thread is the dispatcher */
	unsigned idle; /* threads that wait for that part */
	unsigned threads;
	pthread_t thread[THREADS];
};

/* An item that was claimed. */
struct task {
	struct queue *queue;
	struct conf *conf; /* the one with which it was claimed */
	void *item;
};

/* --- looking for work --------------------------------------------------- */

/* Returns a reference to the current configuration. */
static struct conf *
scheduler_conf(struct scheduler *s)
{
	struct conf *conf;

	lock_take(&s->lock);
	conf = conf_ref(s->conf);
	lock_give(&s->lock);
	return conf;
}

static bool
has_room(struct scheduler *s, struct queue *q, const struct conf *conf)
{
	const unsigned limit = q->kind->limit(conf);
	bool room;

	lock_take(&s->lock);
	room = q->running < limit;
	lock_give(&s->lock);
	return room;
}

/* Claims the next item of one kind.  If that is lost, perhaps because a reload
 * came meanwhile, looks again by the configuration of that moment. */
static bool
scheduler_claim(struct scheduler *s, struct queue *q, struct task *task)
{
	enum rc rc;

	do {
		conf_unref(task->conf);
		task->conf = scheduler_conf(s);
		q->look_at = clock_mono() + task->conf->sweep_interval;
		rc = q->kind->next(
		    q->self, task->conf, &task->item, &q->look_at);
	} while (rc == RC_LOST && !atomic_load(&s->stop));
	q->found = rc == RC_OK;
	q->rests_to = clock_mono();
	if (q->found) {
		q->failure = RC_OK;
		q->look_at = q->rests_to;
		task->queue = q;
		return true;
	}
	q->rests_to += q->kind->rest;
	if (rc == RC_NOTFOUND || rc == RC_LOST) {
		q->failure = RC_OK;
		return false;
	}
	if (rc != q->failure)
		maintenance_failed(s->store, q->kind->name, rc);
	q->failure = rc;
	q->rests_to = clock_mono() + FAILURE_PAUSE;
	q->look_at = q->rests_to;
	return false;
}

/* Claims an item of the kinds that may be due.  False: no item is due; *wake
 * becomes the time of the next scheduler_look (mono). */
static bool
scheduler_look(struct scheduler *s, struct task *task, int64_t *wake)
{
	struct queue *q;
	unsigned i;

	*wake = LOCK_FOREVER;
	for (i = 0; i < KINDS; i++) {
		q = &s->queue[(s->first + i) % KINDS];
		if (!has_room(s, q, task->conf))
			continue;
		if (clock_mono() >= q->look_at && scheduler_claim(s, q, task)) {
			s->first = (s->first + i + 1) % KINDS;
			return true;
		}
		if (q->look_at < *wake)
			*wake = q->look_at;
	}
	return false;
}

/* News may concern each kind. */
static void
note_news(struct scheduler *s)
{
	struct queue *q;

	for (q = s->queue; q < s->queue + KINDS; q++) {
		if (q->look_at > q->rests_to)
			q->look_at = q->rests_to;
	}
}

/* Whether other processes may make work for this one. */
static bool
shares_work(const struct scheduler *s, const struct conf *conf)
{
	const struct queue *q;

	for (q = s->queue; q < s->queue + KINDS; q++) {
		if (q->kind != &maintenance_kind && q->kind->expected(conf))
			return true;
	}
	return false;
}

static void
read_watch(struct scheduler *s)
{
	enum rc rc = s->watch != -1 ? store_watch_read(s->watch) : RC_NOTFOUND;

	if (rc == RC_LOST) {
		close(s->watch);
		s->watch = -1;
	} else if (rc == RC_OK)
		s->written_at = clock_mono();
}

/* Sleeps until the database is written, until there is news, or until then
 * (mono).  Work of this process is news, because its commit may have been
 * visible only long after it was written: a sync may take longer than
 * POLL_AFTER. */
static void
sleep_quietly(struct scheduler *s, int64_t until)
{
	struct pollfd fds[2] = { { .fd = s->watch, .events = POLLIN },
		{ .fd = s->news, .events = POLLIN } };
	uint64_t n;

	(void)poll(fds, 2, clock_left(until));
	if (read(s->news, &n, sizeof(n)) == -1)
		assert(errno == EAGAIN);
}

/* Waits for news, or until then (mono). */
static void
scheduler_wait_for_news(struct scheduler *s, bool shares, int64_t until)
{
	const int64_t now = clock_mono();

	if (!shares) {
		if (store_wait_work(s->store, &s->generation, until))
			note_news(s);
		return;
	}
	if (!s->watched) {
		s->watched = true;
		s->watch = store_watch(s->store);
		s->written_at = now;
	}
	if (s->watch != -1 && now >= s->written_at + POLL_AFTER)
		sleep_quietly(s, until);
	else {
		if (until > now + POLL_INTERVAL)
			until = now + POLL_INTERVAL;
		(void)store_wait_work(s->store, &s->generation, until);
	}
	read_watch(s);
	note_news(s);
}

/* Waits for an item.  False: the scheduler is being stopped. */
static bool
dispatch(struct scheduler *s, struct task *task)
{
	int64_t wake;
	bool shares;

	while (!atomic_load(&s->stop)) {
		task->conf = scheduler_conf(s);
		if (scheduler_look(s, task, &wake))
			return true;
		shares = shares_work(s, task->conf);
		conf_unref(task->conf);
		scheduler_wait_for_news(s, shares, wake);
	}
	return false;
}

/* --- threads ------------------------------------------------------------ */

static void *thread_main(void *arg);

/* Starts one more thread; under the lock.  Returns 0, or an errno value. */
static int
scheduler_start_thread(struct scheduler *s)
{
	int error;

	if (s->threads == THREADS)
		return EAGAIN;
	atomic_fetch_add(&s->alive, 1);
	error = thread_start(
	    &s->thread[s->threads], "scheduler", THREAD_STACK, thread_main, s);
	if (error == 0)
		s->threads++;
	else
		atomic_fetch_sub(&s->alive, 1);
	return error;
}

/* Whether more work can be expected that may begin now; under the lock. */
static bool
expects_more(const struct scheduler *s, const struct conf *conf)
{
	const struct queue *q;

	for (q = s->queue; q < s->queue + KINDS; q++) {
		if (q->running < q->kind->limit(conf) &&
		    (q->found || q->kind->expected(conf)))
			return true;
	}
	return false;
}

/* Waits to become the dispatcher.  False: the scheduler is being stopped. */
static bool
become_dispatcher(struct scheduler *s)
{
	bool taken;

	lock_take(&s->lock);
	s->idle++;
	while (s->taken && !atomic_load(&s->stop))
		lock_wait(&s->lock, &s->vacant, LOCK_FOREVER);
	s->idle--;
	taken = !atomic_load(&s->stop);
	s->taken = s->taken || taken;
	lock_give(&s->lock);
	return taken;
}

/* Before the item is run.  If no thread can be started, this thread dispatches
 * again after it has run the item. */
static void
hand_on(struct scheduler *s, const struct task *task)
{
	int error = 0;

	lock_take(&s->lock);
	task->queue->running++;
	s->taken = false;
	if (s->idle > 0)
		pthread_cond_signal(&s->vacant);
	else if (!atomic_load(&s->stop) && expects_more(s, task->conf))
		error = scheduler_start_thread(s);
	lock_give(&s->lock);
	if (error != 0)
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
}

static void
scheduler_run(struct scheduler *s, struct task *task)
{
	struct queue *q = task->queue;

	q->kind->run(q->self, task->conf, task->item);
	conf_unref(task->conf);
	lock_take(&s->lock);
	q->running--;
	lock_give(&s->lock);
	/* The kind may have been at its limit, or a topic of the outbox. */
	store_wake(s->store);
}

/* The last thread to end sends a signal to the main thread, which waits for
 * signals only. */
static void *
thread_main(void *arg)
{
	struct scheduler *s = arg;
	struct task task;

	while (become_dispatcher(s)) {
		if (!dispatch(s, &task))
			break;
		hand_on(s, &task);
		scheduler_run(s, &task);
	}
	if (atomic_fetch_sub(&s->alive, 1) == 1)
		(void)kill(getpid(), SIGUSR1);
	return NULL;
}

/* --- beginning and end -------------------------------------------------- */

static void
set_kind(struct queue *q, const struct work_kind *kind, void *self)
{
	q->kind = kind;
	q->self = self;
}

enum rc
scheduler_start(struct scheduler **out, struct conf *conf, struct store *store)
{
	struct scheduler *s = calloc(1, sizeof(*s));
	struct queue *q;
	bool started;

	*out = NULL;
	if (s == NULL)
		return RC_NOMEM;
	s->conf = conf_ref(conf);
	s->store = store;
	s->watch = -1;
	s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	store_news_to(store, s->news);
	lock_init(&s->lock, LOCK_SCHEDULER);
	lock_cond_init(&s->vacant);
	set_kind(&s->queue[MAINTENANCE], &maintenance_kind,
	    maintenance_new(store, &s->stop));
	set_kind(&s->queue[RUNNER], &runner_kind, store);
	set_kind(&s->queue[RECONCILE], &reconcile_kind, reconcile_new(store));
	set_kind(&s->queue[OUTBOX], &outbox_kind, outbox_new(store, &s->stop));
	set_kind(&s->queue[ATTENTION], &attention_kind, store);
	attention_configure(conf, store);
	for (q = s->queue; q < s->queue + KINDS && q->self != NULL;)
		q++;
	lock_take(&s->lock);
	started = q == s->queue + KINDS && s->news != -1 &&
	    scheduler_start_thread(s) == 0;
	lock_give(&s->lock);
	if (!started) {
		scheduler_stop(s);
		return RC_NOMEM;
	}
	*out = s;
	return RC_OK;
}

void
scheduler_reload(struct scheduler *s, struct conf *conf)
{
	struct conf *old;

	lock_take(&s->lock);
	old = s->conf;
	s->conf = conf_ref(conf);
	lock_give(&s->lock);
	conf_retire(old);
	conf_unref(old);
	attention_configure(conf, NULL);
	store_wake(s->store);
}

void
scheduler_halt(struct scheduler *s)
{
	if (s == NULL)
		return;
	lock_take(&s->lock);
	atomic_store(&s->stop, true);
	pthread_cond_broadcast(&s->vacant);
	lock_give(&s->lock);
	store_wake(s->store);
}

bool
scheduler_ended(const struct scheduler *s)
{
	return s == NULL || atomic_load(&s->alive) == 0;
}

void
scheduler_stop(struct scheduler *s)
{
	if (s == NULL)
		return;
	/* From then on no thread is started. */
	scheduler_halt(s);
	while (s->threads > 0)
		pthread_join(s->thread[--s->threads], NULL);
	maintenance_free(s->queue[MAINTENANCE].self);
	reconcile_free(s->queue[RECONCILE].self);
	outbox_free(s->queue[OUTBOX].self);
	if (s->watch != -1)
		close(s->watch);
	store_news_to(s->store, -1);
	if (s->news != -1)
		close(s->news);
	conf_unref(s->conf);
	pthread_cond_destroy(&s->vacant);
	lock_destroy(&s->lock);
	free(s);
}
