/*
 * How long to wait before a failed operation is tried again.
 */
#ifndef BACKOFF_H
#define BACKOFF_H

#include <stdint.h>

/*
 * Returns the pause (ms) before the next try.  It is first after the first
 * failure, twice that after the second, and so on.  Then up to half of it is
 * added, so that operations that failed together are not tried again together.
 * The result is at most most (ms), unless first is more.  random is any number
 * of 32 random bits.
 */
int64_t
backoff_pause(int64_t first, int failures, int64_t most, uint32_t random);

#endif
