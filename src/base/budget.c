/*
 * Shared bytes, first come, first served: small demands cannot keep a large
 * one waiting for ever.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "leader.h"
#include "lock.h"
#include "budget.h"

struct budget {
	struct lock lock; /* guards the members below */
	pthread_cond_t changed;
	size_t total, used;
	uint64_t asked, served; /* numbers of waiting threads */
};

struct budget *
budget_new(size_t total)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->total = total;
	lock_init(&b->lock, LOCK_BUDGET);
	lock_cond_init(&b->changed);
	return b;
}

void
budget_free(struct budget *b)
{
	if (b == NULL)
		return;
	assert(b->used == 0 && b->asked == b->served);
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

void
budget_take(struct budget *b, size_t n)
{
	uint64_t turn;

	lock_take(&b->lock);
	turn = b->asked++;
	if (turn != b->served || !budget_fits(b, n)) {
		lock_give(&b->lock);
		leader_yield();
		lock_take(&b->lock);
	}
	while (turn != b->served || !budget_fits(b, n))
		lock_wait(&b->lock, &b->changed, LOCK_FOREVER);
	b->used += n;
	b->served++;
	pthread_cond_broadcast(&b->changed);
	lock_give(&b->lock);
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
