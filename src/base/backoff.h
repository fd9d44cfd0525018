/*
 * How long to wait before a failed operation is tried again.  Pure: the caller
 * waits, and supplies the random bits.
 */
#ifndef BACKOFF_H
#define BACKOFF_H

#include <assert.h>
#include <stdint.h>

/*
 * Returns the pause (ms) before the next try.  It is first after the first
 * failure, twice that after the second, and so on.  Then up to half of it is
 * added, so that operations that failed together are not tried again together.
 * The result is at most most (ms), unless first is more.  random is any number
 * of 32 random bits.
 */
static inline int64_t
backoff_pause(int64_t first, int failures, int64_t most, uint32_t random)
{
	const int64_t doubled = most - most / 3; /* half of it is added */
	int64_t pause = first;

	assert(first >= 0 && most >= 0 && most <= INT64_MAX / 4);
	while (failures-- > 1 && pause > 0 && pause < doubled)
		pause *= 2;
	if (pause > doubled)
		pause = first > doubled ? first : doubled;
	if (pause >= most)
		return pause;
	/* 16 bits are enough, and keep the product within an int64_t. */
	pause += pause / 2 * (int64_t)(random >> 16) / 65536;
	return pause < most ? pause : most;
}

#endif
