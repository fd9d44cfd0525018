/*
 * Whether the clock of a database server has jumped ahead.
 *
 * A clock up to the limit does no harm.  One beyond the limit is believed if as
 * much time has passed on this host since it was believed last.  A process that
 * has never believed it can compare it only with its host's wall clock, which
 * the same bad time server may have set.  So that one counts only if no other
 * process has found a jump, or if the clock has gone back since.
 */
#include "config.h"

#include <stdlib.h>

#include "ahead.h"

static bool
agree(int64_t a, int64_t b)
{
	return llabs(a - b) <= AHEAD_STEP;
}

enum ahead_verdict
ahead_judge(const struct ahead *a)
{
	const bool held = a->held_at != 0 && a->held_at != a->own;

	if (a->clock <= a->limit)
		return AHEAD_FOLLOW;
	if (a->expected != 0)
		return agree(a->clock, a->expected) ? AHEAD_FOLLOW : AHEAD_HOLD;
	if (held && a->clock >= a->held_at)
		return AHEAD_HOLD;
	if (!held && !a->first)
		return AHEAD_WAIT;
	return agree(a->clock, a->wall) ? AHEAD_FOLLOW : AHEAD_HOLD;
}
