/*
 * Whether the clock of a database server may be believed, or has jumped ahead.
 *
 * A clock up to the limit does no harm.  One beyond the limit is believed if as
 * much time has passed on this host since it was believed last.  A process that
 * has never believed it can compare it only with its host's wall clock, which
 * the same bad time server may have set.  So that one counts only if no other
 * process has found a jump, or if the clock has gone back since.
 */
#ifndef AHEAD_H
#define AHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Two clocks agree that differ by no more (ms). */
#define AHEAD_STEP INT64_C(300000)

/* What a process knows of the server's clock.  All times in ms since 1970. */
struct ahead {
	int64_t clock;    /* the server's */
	int64_t limit;    /* store time goes no further */
	int64_t held_at;  /* the server's clock when a process found that it had
			  * jumped ahead; 0: time goes on */
	int64_t expected; /* what the server's clock should be, by the time that
			   * has passed on this host since it was believed; 0:
			   * this process has never believed it */
	int64_t wall;     /* this host's wall clock */
	int64_t own;      /* held_at, if this process has set it by its wall
			   * clock; else 0 */
	bool first;       /* any other process would have said by now that the
			   * clock has jumped */
};

enum ahead_verdict {
	AHEAD_FOLLOW, /* believe it, and move the limit along */
	AHEAD_WAIT,   /* nobody knows yet; store time stands still */
	AHEAD_HOLD,   /* it has jumped; store time stands still */
};

static inline bool
ahead_agree(int64_t a, int64_t b)
{
	return llabs(a - b) <= AHEAD_STEP;
}

static inline enum ahead_verdict
ahead_judge(const struct ahead *a)
{
	const bool held = a->held_at != 0 && a->held_at != a->own;

	if (a->clock <= a->limit)
		return AHEAD_FOLLOW;
	if (a->expected != 0)
		return ahead_agree(a->clock, a->expected) ? AHEAD_FOLLOW
							  : AHEAD_HOLD;
	if (held && a->clock >= a->held_at)
		return AHEAD_HOLD;
	if (!held && !a->first)
		return AHEAD_WAIT;
	return ahead_agree(a->clock, a->wall) ? AHEAD_FOLLOW : AHEAD_HOLD;
}

#endif
