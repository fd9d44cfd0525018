/*
 * Whether the clock of a database server may be believed, or has jumped ahead.
 */
#ifndef AHEAD_H
#define AHEAD_H

#include <stdbool.h>
#include <stdint.h>

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

enum ahead_verdict ahead_judge(const struct ahead *a);

#endif
