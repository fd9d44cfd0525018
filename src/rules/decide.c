/*
 * The decision on a request with a key, by the record of the key.
 *
 * The order is the rule.  A record past its retention counts as deleted, so it
 * belongs to no request.  Then the browser that it belongs to, which hides all
 * else.  Then the fingerprint: a mismatch is reported in
 * every state, because a caller must not learn of a request that is not its
 * own.  A key that was released because nothing happened has no
 * fingerprint: any request may take it.  Then the state.
 *
 * This file knows no clock and no store, and not how a fingerprint is made.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backoff.h"
#include "decide.h"

/* Limits of the pause (ms) between lost attempts of an accepted key. */
#define REQUEUE_FIRST   1000
#define REQUEUE_LONGEST 3600000

/* Whether the record is past its retention, which begins when the answer is
 * confirmed. */
static bool
is_over(const struct record *r, int64_t now)
{
	return (r->state == RECORD_COMPLETED ||
		   r->state == RECORD_FAILED_RETRYABLE) &&
	    !r->unconfirmed && r->expires_at != 0 && r->expires_at <= now;
}

bool
decide_is_past(const struct record *r, int64_t now)
{
	if (r->state == RECORD_EXPIRED)
		return r->expires_at != 0 && r->expires_at <= now;
	if (!is_over(r, now))
		return false;
	return r->expired_retention == 0 ||
	    r->expires_at + r->expired_retention <= now;
}

bool
decide_is_limit(enum decision decision)
{
	return decision >= DECIDE_OLD;
}

int64_t
decide_requeue(int attempt, uint32_t random)
{
	if (attempt <= 1)
		return 0;
	if (attempt >= DECIDE_REQUEUE_MAX)
		return -1;
	return backoff_pause(
	    REQUEUE_FIRST, attempt - 1, REQUEUE_LONGEST, random);
}

enum decide_match
decide_match(const struct record *r, const char *fingerprint_spec,
    const unsigned char fingerprint[FINGERPRINT_LEN])
{
	if (!record_has_fingerprint(r))
		return DECIDE_SAME;
	if (strcmp(r->fingerprint_spec, fingerprint_spec) != 0)
		return DECIDE_OTHER_SPEC;
	return memcmp(r->fingerprint, fingerprint, FINGERPRINT_LEN) == 0
	    ? DECIDE_SAME
	    : DECIDE_DIFFERS;
}

bool
decide_is_mine(const struct record *r, const char *peer, const char *cookie)
{
	if (r->cookie[0] == '\0' && cookie == NULL)
		return true;
	return (r->peer != NULL && peer != NULL &&
		   strcmp(r->peer, peer) == 0) ||
	    (cookie != NULL && strcmp(r->cookie, cookie) == 0);
}

enum decision
decide(const struct record *r, bool mine, bool same, int64_t now)
{
	if (r == NULL || decide_is_past(r, now))
		return DECIDE_RUN;
	if (!mine)
		return DECIDE_OF_ANOTHER;
	if (!same)
		return DECIDE_MISMATCH;
	/* It counts as a marker, even before a maintenance pass has made it
	 * one. */
	if (is_over(r, now))
		return DECIDE_GONE;

	switch (r->state) {
	case RECORD_PENDING:
	case RECORD_IN_PROGRESS:
		return DECIDE_BUSY;
	case RECORD_COMPLETED:
		return r->replayable ? DECIDE_REPLAY : DECIDE_NOT_KEPT;
	case RECORD_FAILED_RETRYABLE:
		return DECIDE_RUN;
	case RECORD_UNKNOWN:
	case RECORD_DEAD_LETTER:
		return DECIDE_UNKNOWN;
	case RECORD_EXPIRED:
		return DECIDE_GONE;
	case RECORD_NONE:
		break;
	}
	assert(!"a record without a state");
	return DECIDE_UNKNOWN;
}

/* --- limits --------------------------------------------------------------- */

unsigned
decide_share(unsigned max)
{
	return max > 1 ? max / 2 : 1;
}

bool
decide_is_queue_full(int64_t all, int64_t own, unsigned max)
{
	return all >= max || own >= decide_share(max);
}

bool
decide_is_no_room(uint64_t all, uint64_t own, uint64_t more, uint64_t max)
{
	return all + more > max ||
	    (all + more > max / 2 && own > 0 && own + more > max / 2);
}

enum decision
decide_limit(const struct decide_limits *l)
{
	if (l->waits && !l->is_new)
		return DECIDE_RUN;
	if (l->active)
		return DECIDE_CROWDED;
	if (l->is_new && l->max != 0 && l->used > l->max)
		return DECIDE_FULL;
	if (l->is_new && l->open)
		return DECIDE_OPEN;
	return l->no_room ? DECIDE_NO_ROOM : DECIDE_RUN;
}
