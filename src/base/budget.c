/*
 * Shared bytes, first come, first served, but callers alternate: neither
 * small demands nor another caller's keep one waiting for ever.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "leader.h"
#include "lock.h"
#include "budget.h"

/* A waiting thread. */
struct demand {
	TAILQ_ENTRY(demand) link;
	int64_t caller;
};

struct budget {
	struct lock lock; /* guards the members below */
	pthread_cond_t changed;
	size_t total, used;
	unsigned waits;               /* of one caller, at most */
	int64_t last;                 /* the caller that was served last */
	TAILQ_HEAD(, demand) waiting; /* the first to come is the first */
	bool stopped;
};

struct budget *
budget_new(size_t total, unsigned waits)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->total = total;
	b->waits = waits;
	TAILQ_INIT(&b->waiting);
	lock_init(&b->lock, LOCK_BUDGET);
	lock_cond_init(&b->changed);
	return b;
}

void
budget_free(struct budget *b)
{
	if (b == NULL)
		return;
	assert(b->used == 0 && TAILQ_EMPTY(&b->waiting));
	pthread_cond_destroy(&b->changed);
	lock_destroy(&b->lock);
	free(b);
}

static bool
budget_fits(const struct budget *b, size_t n)
{
	assert(n <= b->total);
	return n <= b->total - b->used;
}

/* The demand that is next. */
static const struct demand *
budget_next(const struct budget *b)
{
	const struct demand *d;

	TAILQ_FOREACH(d, &b->waiting, link)
	if (d->caller != b->last)
		return d;
	return TAILQ_FIRST(&b->waiting);
}

static bool
budget_may_wait(const struct budget *b, int64_t caller)
{
	const struct demand *d;
	unsigned n = 0;

	TAILQ_FOREACH(d, &b->waiting, link)
	n += d->caller == caller;
	return n < b->waits;
}

/* Waits until the bytes are there, and this demand is next. */
static bool
budget_wait(struct budget *b, size_t n, int64_t caller, int64_t until_mono)
{
	struct demand demand = { .caller = caller };
	bool served = false, late = false;

	if (!budget_may_wait(b, caller))
		return false;
	TAILQ_INSERT_TAIL(&b->waiting, &demand, link);
	lock_give(&b->lock);
	leader_yield();
	lock_take(&b->lock);
	for (;;) {
		served = budget_next(b) == &demand && budget_fits(b, n);
		if (served || late || b->stopped)
			break;
		late = !lock_wait(&b->lock, &b->changed, until_mono);
	}
	TAILQ_REMOVE(&b->waiting, &demand, link);
	pthread_cond_broadcast(&b->changed);
	return served;
}

bool
budget_take(struct budget *b, size_t n, int64_t caller, int64_t until_mono)
{
	bool served;

	lock_take(&b->lock);
	served = TAILQ_EMPTY(&b->waiting) && budget_fits(b, n);
	if (!served && until_mono != 0)
		served = budget_wait(b, n, caller, until_mono);
	if (served) {
		b->used += n;
		b->last = caller;
	}
	lock_give(&b->lock);
	return served;
}

void
budget_give(struct budget *b, size_t n)
{
	lock_take(&b->lock);
	assert(n <= b->used);
	b->used -= n;
	pthread_cond_broadcast(&b->changed);
	lock_give(&b->lock);
}

void
budget_stop_waiting(struct budget *b)
{
	lock_take(&b->lock);
	b->stopped = true;
	pthread_cond_broadcast(&b->changed);
	lock_give(&b->lock);
}
