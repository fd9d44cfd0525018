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

#define MILLISECOND INT64_C(1000000) /* ns */
#define SECOND      (1000 * MILLISECOND)

/* A bucket is the time at which it would be full (ns, mono): each token that is
 * taken puts that off. */
struct bucket {
	int64_t caller;
	int64_t full;
};

struct rate {
	struct bucket buckets[SETS][WAYS];
};

struct rate *
rate_new(void)
{
	return calloc(1, sizeof(struct rate));
}

void
rate_free(struct rate *rate)
{
	free(rate);
}

/* Finds the bucket of that caller.  If there is none, a full one replaces the
 * bucket that was full first. */
static struct bucket *
rate_find(struct rate *rate, int64_t caller)
{
	struct bucket *set =
	    rate->buckets[((uint64_t)caller ^ (uint64_t)caller >> 31) % SETS];
	struct bucket *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].caller == caller)
			return &set[i];
		if (set[i].full < oldest->full)
			oldest = &set[i];
	}
	*oldest = (struct bucket){ .caller = caller };
	return oldest;
}

int64_t
rate_take(
    struct rate *rate, int64_t caller, unsigned per_second, int64_t now_mono)
{
	struct bucket *bucket = rate_find(rate, caller);
	const int64_t now = now_mono * MILLISECOND, token = SECOND / per_second;
	const int64_t missing = bucket->full - (now + SECOND - token);

	if (missing <= 0) {
		bucket->full =
		    (bucket->full > now ? bucket->full : now) + token;
		return 0;
	}
	/* More is missing only if the time has gone back. */
	return ((missing < token ? missing : token) + MILLISECOND - 1) /
	    MILLISECOND;
}
