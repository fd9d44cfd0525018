/*
 * A loop.
 *
 * Timers are a pairing heap, which needs no memory of its own.  Messages are a
 * list that many threads push to and the loop takes as a whole.  A thread
 * writes to the eventfd only if the loop may be about to sleep: it sets asleep
 * and looks at the list once more, while the sender pushes and looks at asleep;
 * with sequential consistency one of the two sees the other.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"

#include "loop.h"

#define EVENTS 64

struct loop {
	int epoll;
	struct loop_watch wake; /* the eventfd */
	int64_t now;
	uint64_t rounds;
	struct loop_timer *first;
	bool in_timers;                      /* calls those that are due */
	_Atomic(struct loop_message *) sent; /* the last one first */
	atomic_uint senders;                 /* threads in loop_send() */
	atomic_bool asleep;
	bool ended;
	/* of this round; ended watches are taken out */
	struct epoll_event events[EVENTS];
	int n;
};

/* --- a call that takes too long ------------------------------------------- */

/* Runs of a sanitizer are too slow to be measured. */
#if defined(LOCK_CHECKS) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)

/* How long a call of the loop may take (us). */
#define CALL_MOST 50000
/* How old may be what is known of the waits for a processor (us). */
#define DELAY_AGE 1000000

/* Of the loop in this thread. */
static _Thread_local const char *doing; /* NULL: nothing yet */
static _Thread_local int64_t began;     /* mono_us */
static _Thread_local int64_t delay, delay_at = INT64_MIN;
static _Thread_local unsigned stops; /* fault_stops() */

/* How long this thread has waited for a processor (us); -1: not known. */
static int64_t
processor_delay(void)
{
	char text[64] = "", *waited;
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd != -1 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd != -1)
		close(fd);
	/* The second number (ns). */
	waited = n > 0 ? strchr(text, ' ') : NULL;
	return waited != NULL ? strtoll(waited, NULL, 10) / 1000 : -1;
}

static void
call_begins(const char *what)
{
	doing = what;
	began = clock_mono_us();
	stops = fault_stops();
	if (began - DELAY_AGE > delay_at) {
		delay = processor_delay();
		delay_at = began;
	}
}

/* How many threads of the machine want each processor; at least 1. */
static int64_t
share_of_machine(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	double load;

	return getloadavg(&load, 1) == 1 && load > (double)n
	    ? (int64_t)(load / (double)n) + 1
	    : 1;
}

/* A machine that has other things to do is not the loop's fault, nor is a tool
 * that is loaded with the program, such as valgrind. */
static void
call_ends(void)
{
	int64_t took = clock_mono_us() - began, now;
	const char *preload;

	if (took < CALL_MOST || stops != fault_stops())
		return;
	preload = getenv("LD_PRELOAD");
	now = processor_delay();
	if (now == -1 || delay == -1 || (preload != NULL && preload[0] != '\0'))
		return;
	took -= now - delay;
	delay = now;
	/* Disks and memory are shared, too. */
	if (took < CALL_MOST * share_of_machine())
		return;
	log_event(LOG_ERROR, "loop-waited", NULL, LOG_S("doing", doing),
	    LOG_I("us", took));
}

void
loop_doing(const char *what)
{
	if (doing == NULL)
		return;
	call_ends();
	call_begins(what);
}
#else
#define call_begins(what) ((void)(what))
#define call_ends()       ((void)0)

void
loop_doing(const char *what)
{
	(void)what;
}
#endif

/* --- timers --------------------------------------------------------------- */

/* Makes one heap of two; either may be NULL.  back is the parent of a first
 * child, and the sibling before of another one. */
static struct loop_timer *
meld(struct loop_timer *a, struct loop_timer *b)
{
	struct loop_timer *t;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (b->at < a->at) {
		t = a;
		a = b;
		b = t;
	}
	b->back = a;
	b->next = a->child;
	if (b->next != NULL)
		b->next->back = b;
	a->child = b;
	return a;
}

/* Makes one heap of siblings. */
static struct loop_timer *
meld_all(struct loop_timer *t)
{
	struct loop_timer *pairs = NULL, *a, *b, *all = NULL;

	while ((a = t) != NULL) {
		b = a->next;
		t = b != NULL ? b->next : NULL;
		a->next = NULL;
		if (b != NULL)
			b->next = NULL;
		a = meld(a, b);
		a->back = NULL;
		a->next = pairs;
		pairs = a;
	}
	while ((a = pairs) != NULL) {
		pairs = a->next;
		a->next = NULL;
		all = meld(all, a);
	}
	return all;
}

void
loop_clear(struct loop *l, struct loop_timer *t)
{
	if (!t->is_set)
		return;
	t->is_set = false;
	if (t == l->first) {
		l->first = meld_all(t->child);
	} else {
		if (t->back->child == t)
			t->back->child = t->next;
		else
			t->back->next = t->next;
		if (t->next != NULL)
			t->next->back = t->back;
		l->first = meld(l->first, meld_all(t->child));
	}
	t->child = t->next = t->back = NULL;
}

void
loop_set(struct loop *l, struct loop_timer *t, int64_t at)
{
	/* A timer that sets itself anew must not keep up the round. */
	if (l->in_timers && at <= l->now)
		at = l->now + 1;
	if (t->is_set && t->at == at)
		return;
	loop_clear(l, t);
	t->at = at;
	t->is_set = true;
	t->child = t->next = t->back = NULL;
	l->first = meld(l->first, t);
}

static void
call_timers(struct loop *l)
{
	struct loop_timer *t;

	l->in_timers = true;
	while ((t = l->first) != NULL && t->at <= l->now) {
		loop_clear(l, t);
		call_begins("timer");
		t->due(t);
		call_ends();
	}
	l->in_timers = false;
}

/* --- messages ------------------------------------------------------------- */

void
loop_send(struct loop *l, struct loop_message *m)
{
	const uint64_t one = 1;
	struct loop_message *last;

	atomic_fetch_add(&l->senders, 1);
	last = atomic_load(&l->sent);
	do
		m->next = last;
	while (!atomic_compare_exchange_weak(&l->sent, &last, m));
	if (atomic_load(&l->asleep) && atomic_exchange(&l->asleep, false) &&
	    write(l->wake.fd, &one, sizeof(one)) != sizeof(one))
		abort();
	/* Not before this may loop_close() go on. */
	atomic_fetch_sub(&l->senders, 1);
}

static void
loop_take_messages(struct loop *l)
{
	struct loop_message *last = atomic_exchange(&l->sent, NULL);
	struct loop_message *m = NULL, *next;

	for (; last != NULL; last = next) {
		next = last->next;
		last->next = m;
		m = last;
	}
	for (; m != NULL; m = next) {
		next = m->next;
		call_begins("message");
		m->come(m);
		call_ends();
	}
}

/* The eventfd: with EPOLLET each write is told once, so nothing has to be read;
 * at a write a microsecond it is full in half a million years. */
static void
loop_woken(struct loop_watch *w, unsigned events)
{
	(void)w;
	(void)events;
}

/* --- descriptors ---------------------------------------------------------- */

enum rc
loop_watch(struct loop *l, struct loop_watch *w, int fd, unsigned events)
{
	struct epoll_event e = { .events = events, .data = { .ptr = w } };
	const int op = w->fd == -1 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	int error;

	if (w->fd != -1 && w->events == events)
		return RC_OK;
	assert(w->fd == -1 || w->fd == fd);
	if (epoll_ctl(l->epoll, op, fd, &e) == -1) {
		error = errno;
		log_event(LOG_ERROR, "descriptor-unwatched", NULL,
		    LOG_S("why", strerror(error)));
		return error == ENOMEM || error == ENOSPC ? RC_NOMEM : RC_IO;
	}
	w->fd = fd;
	w->events = events;
	return RC_OK;
}

void
loop_unwatch(struct loop *l, struct loop_watch *w)
{
	if (w->fd == -1)
		return;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
	for (int i = 0; i < l->n; i++)
		if (l->events[i].data.ptr == w)
			l->events[i].data.ptr = NULL;
}

static void
call_watches(struct loop *l)
{
	struct loop_watch *w;

	for (int i = 0; i < l->n; i++) {
		if ((w = l->events[i].data.ptr) == NULL)
			continue;
		l->events[i].data.ptr = NULL;
		call_begins("descriptor");
		w->ready(w, l->events[i].events);
		call_ends();
	}
	l->n = 0;
}

/* --- rounds --------------------------------------------------------------- */

/* How long epoll_wait() may wait (ms). */
static int
round_patience(struct loop *l, int64_t until)
{
	if (l->first != NULL && l->first->at < until)
		until = l->first->at;
	if (atomic_load(&l->sent) != NULL)
		return 0;
	return until == INT64_MAX ? -1 : clock_left(until);
}

void
loop_round(struct loop *l, int64_t until)
{
	int n;

	atomic_store(&l->asleep, true);
	n = epoll_wait(l->epoll, l->events, EVENTS, round_patience(l, until));
	atomic_store(&l->asleep, false);
	if (n == -1)
		assert(errno == EINTR);
	l->n = n > 0 ? n : 0;
	l->now = clock_mono();
	l->rounds++;
	call_watches(l);
	loop_take_messages(l);
	call_timers(l);
}

void
loop_run(struct loop *l)
{
	while (!l->ended)
		loop_round(l, INT64_MAX);
	l->ended = false;
}

void
loop_end(struct loop *l)
{
	l->ended = true;
}

int64_t
loop_now(const struct loop *l)
{
	return l->now;
}

uint64_t
loop_round_number(const struct loop *l)
{
	return l->rounds;
}

enum rc
loop_open(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));
	int fd;

	*out = NULL;
	if (l == NULL)
		return RC_NOMEM;
	l->now = clock_mono();
	l->rounds = 1;
	l->wake = (struct loop_watch){ .ready = loop_woken, .fd = -1 };
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll != -1 && fd != -1 &&
	    loop_watch(l, &l->wake, fd, EPOLLIN | EPOLLET) == RC_OK) {
		*out = l;
		return RC_OK;
	}
	log_event(
	    LOG_ERROR, "loop-not-opened", NULL, LOG_S("why", strerror(errno)));
	if (l->epoll != -1)
		close(l->epoll);
	if (fd != -1)
		close(fd);
	free(l);
	return RC_IO;
}

void
loop_close(struct loop *l)
{
	if (l == NULL)
		return;
	assert(l->first == NULL && atomic_load(&l->sent) == NULL);
	/* The last message may have come before its sender was done. */
	while (atomic_load(&l->senders) > 0)
		(void)sched_yield();
	close(l->epoll);
	close(l->wake.fd);
	free(l);
}
