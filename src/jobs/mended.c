/*
 * What was mended in the output of programs.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdint.h>

#include "cgihead.h"
#include "mended.h"

/* A word for each program: 56 bits of its hash, and a bit for each kind of
 * mending.  Two programs that share a slot take it from each other, which costs
 * lines in the log. */
#define MENDED_SLOTS 256
#define MENDED_BITS  UINT64_C(0xff)

_Static_assert(CGIHEAD_MENDINGS <= 8, "a mending has no bit in the table");

static _Atomic uint64_t mended_slots[MENDED_SLOTS];

/* FNV-1a. */
static uint64_t
mended_hash(const char *s)
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
	const uint64_t h = mended_hash(program);
	_Atomic uint64_t *slot = &mended_slots[h % MENDED_SLOTS];
	const uint64_t mark = h & ~MENDED_BITS;
	uint64_t old = atomic_load(slot), known;

	do {
		known = (old & ~MENDED_BITS) == mark ? old & MENDED_BITS : 0;
		if ((bits & ~known) == 0)
			return 0;
	} while (!atomic_compare_exchange_weak(
	    slot, &old, mark | known | (bits & MENDED_BITS)));
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
