/*
 * A table of sums, by a hash of the caller's name (caller.h).  Two callers may
 * have one sum; which ones they are is another matter in each process.
 */
#include "config.h"

#include <sys/random.h>

#include <stdatomic.h>
#include <string.h>

#include "caller.h"
#include "spool.h"

#include "shares.h"

#define SHARES 1024 /* and SHARES_NONE */

static _Atomic uint64_t taken[SHARES + 1];
static _Atomic uint64_t seed; /* 0: not drawn yet */

static uint64_t
shares_seed(void)
{
	uint64_t drawn = 0, old = 0;

	if (atomic_load(&seed) == 0) {
		/* Without random bytes all processes have the same pairs. */
		if (getrandom(&drawn, sizeof(drawn), GRND_NONBLOCK) == -1)
			drawn = 0;
		drawn |= 1;
		(void)atomic_compare_exchange_strong(&seed, &old, drawn);
	}
	return atomic_load(&seed);
}

unsigned
shares_of(const char *address)
{
	char name[CALLER_NAME_LEN + 1];
	uint64_t hash = shares_seed();

	caller_name("", address, name);
	if (strcmp(name, "-") == 0)
		return SHARES_NONE;
	for (const char *p = name; *p != '\0'; p++) {
		hash =
		    (hash ^ (unsigned char)*p) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return 1 + (unsigned)(hash % SHARES);
}

bool
shares_have_room(unsigned share, uint64_t own, uint64_t more)
{
	const uint64_t half = spool_total() / 2,
		       now = atomic_load(&taken[share]);

	return share == SHARES_NONE || now <= own ||
	    (now <= half && more <= half - now);
}

void
shares_take(unsigned share, uint64_t bytes)
{
	atomic_fetch_add(&taken[share], bytes);
}

void
shares_give(unsigned share, uint64_t bytes)
{
	atomic_fetch_sub(&taken[share], bytes);
}
