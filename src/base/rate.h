/*
 * How often somebody may do something: buckets of tokens, one a name, that
 * fill up again as time passes.
 *
 * In memory, of this process, and of bounded size: of many names at the same
 * time the one that was not seen for longest is forgotten, which fills its
 * bucket.
 */
#ifndef RATE_H
#define RATE_H

#include <stdint.h>

struct rate;

struct rate *rate_new(void); /* NULL: no memory, or no random bytes */
void rate_free(struct rate *);

/*
 * Takes a token out of the bucket that group and name have together, which
 * holds per_second (not 0) and gets as many each second.  0, or if there was
 * none, how long until there is one: ms.  From any thread.
 */
int64_t rate_take(struct rate *, const char *group, const char *name,
    unsigned per_second, int64_t now_mono);

#endif
