/*
 * What happened lately, in a few kilobytes: for the operator's page.  Of this
 * process only; a restart forgets it.
 */
#ifndef RECENT_H
#define RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the last hour, by minute --------------------------------------------- */

/*
 * Any thread may count at any time, without a lock.  Minutes are those of the
 * wall clock: when it is set, what was counted before may be out of the hour.
 */
#define RECENT_MINUTES 60

enum recent_event {
	RECENT_FIRST,   /* a request ran under a new key */
	RECENT_REPLAY,  /* a stored answer was sent again */
	RECENT_REFUSAL, /* an answer of our own, but those of the next line */
	RECENT_UNKNOWN, /* an answer that says that the outcome is unknown */
	RECENT_EVENTS
};

void recent_count(enum recent_event event);

/* What was counted in each minute: [0] is 59 minutes ago, the last one now. */
struct recent_hour {
	int64_t begin_wall; /* the UTC minute of [0] (ms since 1970) */
	uint32_t minute[RECENT_MINUTES][RECENT_EVENTS];
};
void recent_hour(struct recent_hour *out);

/* --- what is refused now, and to whom: in the last minute ----------------- */

/* Bounded: of more than RECENT_REFUSED_MAX callers at once those that were
 * refused last are known. */
#define RECENT_REFUSED_MAX 64

/* "too-many-keys route=/pay caller=192.0.2.7", "overloaded max_store" */
#define RECENT_LINE 256

/* Makes the line of a caller that has too many keys on that route. */
void recent_refused_too_many(
    const char *route, const char *caller, char out[RECENT_LINE]);

/* A limit refused a request; it is logged, once a minute at most.  route and
 * caller: NULL if the limit is one for all. */
void recent_refused_note(const char *code, const char *limit, const char *route,
    const char *caller, int64_t now_mono);

/* Whether anything was noted that recent_refused_over() may forget.  Cheap. */
bool recent_refused_any(void);

/* A new key of that caller on that route was taken: limits for all, and those
 * for it, refuse nothing now, but for one that refuses again and again, such as
 * key_rate. */
void recent_refused_over(const char *route, const char *caller);

/* Puts the i-th of them into out; false: there are no more. */
bool recent_refused_line(size_t i, int64_t now_mono, char out[RECENT_LINE]);

#endif
