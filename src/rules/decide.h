/*
 * Record + fingerprint + now -> what a request with that key gets.
 */
#ifndef DECIDE_H
#define DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

enum decision {
	DECIDE_RUN,      /* no record, or it may run again */
	DECIDE_REPLAY,   /* the stored answer */
	DECIDE_NOT_KEPT, /* it completed, but the answer is not here */
	DECIDE_BUSY,     /* in progress */
	DECIDE_MISMATCH, /* another fingerprint */
	DECIDE_UNKNOWN,  /* it may or may not have happened */
	DECIDE_GONE,     /* expired, kept as a marker */
	/* It could run, but for a limit; decide() sees one record and never
	 * says so. */
	DECIDE_CROWDED, /* too many keys of its scope are in progress */
	DECIDE_OPEN,    /* too many keys of its scope have an open outcome */
	DECIDE_NO_ROOM  /* too many bytes of requests are kept */
};

/* Whether a limit keeps it from running. */
bool decide_is_limit(enum decision);

/*
 * record may be NULL: there is none.  same: the fingerprint, made by the
 * record's own recipe, agrees.  now is store time.
 */
enum decision decide(const struct record *, bool same, int64_t now);

/*
 * How long an accepted key whose attempt of that number was lost waits for the
 * next one: ms.  The first is made up for at once.  random is any number of 32
 * random bits.  -1: it is not worth another one, unless a client asks.
 */
#define DECIDE_REQUEUE_MAX 40 /* attempts: more than a day of them */
int64_t decide_requeue(int attempt, uint32_t random);

/* Whether a record past its retention counts as deleted. */
bool decide_is_past(const struct record *, int64_t now);

#endif
