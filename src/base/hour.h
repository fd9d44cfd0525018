/*
 * What happened in the last hour, by minute, in a few kilobytes: for the
 * operator's page.  Of this process only; a restart forgets it.
 *
 * Any thread may count at any time, without a lock.  Minutes are measured by
 * clock_boot(), so a change of the wall clock moves nothing.  They begin with
 * the UTC minutes of the wall clock as it was at the first call.
 */
#ifndef HOUR_H
#define HOUR_H

#include <stdint.h>

#define HOUR_MINUTES 60

enum hour_event {
	HOUR_FIRST,   /* a request ran under a new key */
	HOUR_REPLAY,  /* a stored answer was sent again */
	HOUR_REFUSAL, /* an answer of our own, but those of the next line */
	HOUR_UNKNOWN, /* an answer that says that the outcome is unknown */
	HOUR_EVENTS
};

void hour_count(enum hour_event event);

/* What was counted in each minute: [0] is 59 minutes ago, the last one now. */
struct hour {
	int64_t begin_wall; /* the UTC minute of [0] (ms since 1970) */
	uint32_t minute[HOUR_MINUTES][HOUR_EVENTS];
};
void hour_read(struct hour *out);

#endif
