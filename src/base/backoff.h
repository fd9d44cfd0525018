/*
 * How long to wait before something that failed is tried again.
 */
#ifndef BACKOFF_H
#define BACKOFF_H

#include <stdint.h>

/*
 * ms until the next try: first after the first failure, twice that after the
 * second, and so on; lengthened by up to half of itself, so that what failed
 * together does not come back together.  At most most ms, unless first is
 * more.  random is any number of 32 random bits.
 */
int64_t
backoff_pause(int64_t first, int failures, int64_t most, uint32_t random);

#endif
