/*
 * Record + fingerprint + now -> the decision on a request with that key.
 */
#ifndef DECIDE_H
#define DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

enum decision {
	DECIDE_RUN,        /* no record, or it may run again */
	DECIDE_REPLAY,     /* the stored response */
	DECIDE_NOT_KEPT,   /* it completed, but the response was not kept */
	DECIDE_BUSY,       /* in progress */
	DECIDE_OF_ANOTHER, /* another browser sent the key first */
	DECIDE_MISMATCH,   /* another fingerprint */
	DECIDE_UNKNOWN,    /* the handler may or may not have acted */
	DECIDE_GONE,       /* expired, kept as a marker */
	/* From here on: the handler could run, but for a limit.  decide() sees
	 * one record and never returns these. */
	DECIDE_OLD,     /* the request is older than its route allows */
	DECIDE_CROWDED, /* too many keys of its caller are in progress */
	DECIDE_OPEN,    /* too many keys of its caller have an open outcome */
	DECIDE_NO_ROOM, /* stored requests take too many bytes */
	DECIDE_FULL     /* the store does: no new key */
};

/* Whether a limit keeps the handler from running. */
bool decide_is_limit(enum decision decision);

/* How the fingerprint of a request compares with the record's. */
enum decide_match {
	DECIDE_SAME, /* or the record has none */
	DECIDE_DIFFERS,
	DECIDE_OTHER_SPEC /* make it again, by the record's spec */
};
enum decide_match
decide_match(const struct record *r, const char *fingerprint_spec,
    const unsigned char fingerprint[FINGERPRINT_LEN]);

/*
 * Whether a request may know of the record.  A key from a form or a query
 * belongs to the browser that sent it first, if it has no scope: then cookie
 * (see struct record) is there, in the record or, of the request, not NULL.
 * The browser has the same address or the same cookies.  peer may be NULL.
 */
bool
decide_is_mine(const struct record *r, const char *peer, const char *cookie);

/*
 * Decides on a request.  record may be NULL: there is none.  mine: see above.
 * same: the fingerprint, made by the record's own spec, agrees.  now is store
 * time.
 */
enum decision decide(const struct record *r, bool mine, bool same, int64_t now);

/*
 * Returns how long (ms) an accepted key waits for its next attempt, after the
 * attempt of that number was lost.  The second attempt follows at once.
 * random is any number of 32 random bits.  -1: no further attempt is made,
 * unless a client asks.
 */
#define DECIDE_REQUEUE_MAX 40 /* attempts: more than a day of them */
int64_t decide_requeue(int attempt, uint32_t random);

/* Whether a record past its retention counts as deleted. */
bool decide_is_past(const struct record *r, int64_t now);

/* --- limits --------------------------------------------------------------- */

/* How much of max one caller may have for itself: half of it, or a single
 * one. */
unsigned decide_share(unsigned max);

/* Whether a queue is full for a caller, of whom own of all its keys are. */
bool decide_is_queue_full(int64_t all, int64_t own, unsigned max);

/* Whether max bytes have no room for more bytes, beside all that are stored,
 * own of them the caller's.  A single request of a caller may take all. */
bool decide_is_no_room(uint64_t all, uint64_t own, uint64_t more, uint64_t max);

struct decide_limits {
	bool is_new; /* there is no record, or it counts as deleted */
	bool waits;  /* the key waits for a worker */
	/* the caller has as many keys as it may: in progress; with an open
	 * outcome */
	bool active, open;
	bool no_room;       /* decide_is_no_room() */
	uint64_t used, max; /* bytes of the store; max 0: no limit */
};

/* DECIDE_RUN, or the limit that keeps the request from running.  None holds up
 * a key that already waits for a worker. */
enum decision decide_limit(const struct decide_limits *l);

#endif
