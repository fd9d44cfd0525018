/*
 * Buckets of tokens.
 *
 * An idle bucket refills within one second, so evicting it changes nothing.  A
 * bucket in use is evicted only if there are thousands of callers within a
 * second.
 *
 * Callers cannot choose their numbers, which are made with a secret: so none of
 * them can evict another one on purpose from the few buckets of one set.
 */
#include "config.h"

#include <stdlib.h>

#include "rate.h"

#define SETS 512
#define WAYS 8

/* Parts of a token, so that the share of a millisecond is a whole number. */
#define TOKEN  1000
#define SECOND 1000 /* ms */

struct bucket {
	int64_t caller;
	int64_t seen; /* mono */
	int64_t level;
};

struct rate {
	struct bucket buckets[SETS][WAYS];
};

struct rate *
rate_new(void)
{
	struct rate *rate = calloc(1, sizeof(*rate));

	return rate;
}

void
rate_free(struct rate *rate)
{
	free(rate);
}

/* Finds the bucket of that caller.  If there is none, a full one replaces the
 * bucket that was not used for longest. */
static struct bucket *
rate_find(struct rate *rate, int64_t caller, int64_t full, int64_t now)
{
	struct bucket *set =
	    rate->buckets[((uint64_t)caller ^ (uint64_t)caller >> 31) % SETS];
	struct bucket *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].caller == caller)
			return &set[i];
		if (set[i].seen < oldest->seen)
			oldest = &set[i];
	}
	oldest->caller = caller;
	oldest->seen = now;
	oldest->level = full;
	return oldest;
}

/* Adds the tokens of the time since the last call, up to the maximum. */
static void
rate_fill(struct bucket *bucket, unsigned per_second, int64_t now)
{
	int64_t full = (int64_t)per_second * TOKEN;
	int64_t passed = now - bucket->seen;

	if (passed >= SECOND)
		bucket->level = full;
	else if (passed > 0)
		bucket->level += passed * per_second;
	if (bucket->level > full)
		bucket->level = full;
	if (passed > 0)
		bucket->seen = now;
}

int64_t
rate_take(struct rate *rate, int64_t caller, unsigned per_second, int64_t now)
{
	struct bucket *bucket;
	int64_t wait = 0;

	bucket = rate_find(rate, caller, (int64_t)per_second * TOKEN, now);
	rate_fill(bucket, per_second, now);
	if (bucket->level >= TOKEN)
		bucket->level -= TOKEN;
	else
		wait = (TOKEN - bucket->level + per_second - 1) / per_second;
	return wait;
}
