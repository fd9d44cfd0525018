/*
 * Pure: the caller waits, and the caller supplies the random bits.
 */
#include "config.h"

#include <assert.h>

#include "backoff.h"

int64_t
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
