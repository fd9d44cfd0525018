/*
 * Rate limits: one bucket of tokens for each caller, which refills with time.
 *
 * The buckets are in the memory of this process, and their number is bounded.
 * When too many callers are active, the one that was not active for longest is
 * forgotten, which fills its bucket.
 */
#ifndef RATE_H
#define RATE_H

#include <stdint.h>

struct rate;

struct rate *rate_new(void); /* NULL: no memory */
void rate_free(struct rate *rate);

/*
 * Takes a token from the caller's bucket.  The bucket holds per_second tokens
 * (not 0) and gains as many each second.  Returns 0, or, if there was no token,
 * the time until there is one (ms).
 */
int64_t rate_take(
    struct rate *rate, int64_t caller, unsigned per_second, int64_t now_mono);

#endif
