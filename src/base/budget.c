/*
 * Shared bytes, first come, first served: a large demand is not passed over by
 * small ones for ever.
 */
#include "config.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "budget.h"

struct budget {
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t changed;
	size_t total, used;
	uint64_t asked, served; /* waiting threads, by number */
};

struct budget *
budget_new(size_t total)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->total = total;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->changed, NULL);
	return b;
}

void
budget_free(struct budget *b)
{
	if (b == NULL)
		return;
	assert(b->used == 0 && b->asked == b->served);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->mutex);
	free(b);
}

static bool
fits(const struct budget *b, size_t n)
{
	assert(n <= b->total);
	return n <= b->total - b->used;
}

bool
budget_try(struct budget *b, size_t n)
{
	bool taken;

	pthread_mutex_lock(&b->mutex);
	taken = b->asked == b->served && fits(b, n);
	if (taken)
		b->used += n;
	pthread_mutex_unlock(&b->mutex);
	return taken;
}

void
budget_take(struct budget *b, size_t n)
{
	uint64_t turn;

	pthread_mutex_lock(&b->mutex);
	turn = b->asked++;
	while (turn != b->served || !fits(b, n))
		pthread_cond_wait(&b->changed, &b->mutex);
	b->used += n;
	b->served++;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
}

void
budget_give(struct budget *b, size_t n)
{
	pthread_mutex_lock(&b->mutex);
	assert(n <= b->used);
	b->used -= n;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
}
