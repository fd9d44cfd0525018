/*
 * The table has a word for each program: 56 bits of its hash, and a bit for
 * each kind of mending.  A program's hash is its place in the table, so two
 * programs that share a place take it from each other.  That costs lines in the
 * log, and no memory.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cgihead.h"
#include "log.h"

#include "mended.h"

#define PLACES 256
#define BITS   UINT64_C(0xff)

static_assert(CGIHEAD_MENDINGS <= 8, "a mending has no bit in the table");

static _Atomic uint64_t told[PLACES];

/* FNV-1a. */
static uint64_t
hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

/* Adds the bits to the program's word, and returns those that are new. */
static unsigned
mended_add(const char *program, unsigned bits)
{
	const uint64_t h = hash(program);
	_Atomic uint64_t *place = &told[h % PLACES];
	const uint64_t mark = h & ~BITS;
	uint64_t old = atomic_load(place), known;

	do {
		known = (old & ~BITS) == mark ? old & BITS : 0;
		if ((bits & ~known) == 0)
			return 0;
	} while (!atomic_compare_exchange_weak(
	    place, &old, mark | known | (bits & BITS)));
	return bits & ~(unsigned)known;
}

void
mended_log(const char *program, const struct request *rq, unsigned bits)
{
	if (bits == 0 || (bits = mended_add(program, bits)) == 0)
		return;
	for (int i = 0; i < CGIHEAD_MENDINGS; i++)
		if ((bits & 1U << i) != 0)
			log_event(LOG_WARN, "head-mended", rq->log,
			    LOG_S("program", program),
			    LOG_S("what",
				cgihead_mending_text((enum cgihead_mending)i)));
}
