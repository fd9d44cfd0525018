/*
 * Buckets of tokens.
 *
 * An idle bucket refills within one second, so evicting it changes nothing.  A
 * bucket in use is evicted only if there are thousands of names within a
 * second.
 *
 * Names are kept as digests, because names may be of any length.  The digests
 * are made with a secret of this process.  Without it clients could choose
 * names that evict each other from the few buckets of one set.
 */
#include "config.h"

#include <sys/random.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lock.h"
#include "rate.h"

#define SETS   512
#define WAYS   8
#define DIGEST 16

/* Parts of a token, so that the share of a millisecond is a whole number. */
#define TOKEN  1000
#define SECOND 1000 /* ms */

struct bucket {
	unsigned char name[DIGEST];
	int64_t seen; /* mono */
	int64_t level;
};

struct rate {
	unsigned char secret[32]; /* random */
	struct lock lock;
	struct bucket buckets[SETS][WAYS];
};

struct rate *
rate_new(void)
{
	struct rate *rate = calloc(1, sizeof(*rate));

	if (rate == NULL)
		return NULL;
	if (getrandom(rate->secret, sizeof(rate->secret), 0) !=
	    sizeof(rate->secret)) {
		free(rate);
		return NULL;
	}
	lock_init(&rate->lock, LOCK_RATE);
	return rate;
}

void
rate_free(struct rate *rate)
{
	if (rate == NULL)
		return;
	lock_destroy(&rate->lock);
	free(rate);
}

/* False: no memory. */
static bool
digest(const struct rate *rate, const char *group, const char *name,
    unsigned char out[DIGEST])
{
	unsigned char text[EVP_MAX_MD_SIZE], md[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (HMAC(EVP_sha256(), rate->secret, sizeof(rate->secret),
		(const unsigned char *)group, strlen(group), text, &n) == NULL)
		return false;
	if (HMAC(EVP_sha256(), text, (int)n, (const unsigned char *)name,
		strlen(name), md, &n) == NULL)
		return false;
	memcpy(out, md, DIGEST);
	return true;
}

/* Finds the bucket of that name.  If there is none, a full one replaces the
 * bucket that was not used for longest. */
static struct bucket *
rate_find(struct rate *rate, const unsigned char name[DIGEST], int64_t full,
    int64_t now)
{
	struct bucket *set = rate->buckets[(name[0] << 8 | name[1]) % SETS];
	struct bucket *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (memcmp(set[i].name, name, DIGEST) == 0)
			return &set[i];
		if (set[i].seen < oldest->seen)
			oldest = &set[i];
	}
	memcpy(oldest->name, name, DIGEST);
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
rate_take(struct rate *rate, const char *group, const char *name,
    unsigned per_second, int64_t now)
{
	unsigned char key[DIGEST];
	struct bucket *bucket;
	int64_t wait = 0;

	/* Without a digest the name has no bucket, and is not limited. */
	if (!digest(rate, group, name, key))
		return 0;
	lock_take(&rate->lock);
	bucket = rate_find(rate, key, (int64_t)per_second * TOKEN, now);
	rate_fill(bucket, per_second, now);
	if (bucket->level >= TOKEN)
		bucket->level -= TOKEN;
	else
		wait = (TOKEN - bucket->level + per_second - 1) / per_second;
	lock_give(&rate->lock);
	return wait;
}
