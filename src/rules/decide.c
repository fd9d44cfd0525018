/*
 * What a request with a key gets, by the record that the key has.
 *
 * The order is the rule: a record past its retention counts as deleted, so it
 * is nobody's; another fingerprint is answered as such in every state, for a
 * caller must not learn of a request that is not its own; then the state.
 *
 * It must not know: how a fingerprint is made, clocks, or the store.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>

#include "backoff.h"
#include "decide.h"

/* Between lost attempts of an accepted key: ms. */
#define REQUEUE_FIRST   1000
#define REQUEUE_LONGEST 3600000

/* Past its retention, whatever that makes of it.  That begins when the answer
 * is sealed. */
static bool
is_over(const struct record *r, int64_t now)
{
	return (r->state == RECORD_COMPLETED ||
		   r->state == RECORD_FAILED_RETRYABLE) &&
	    !r->unsealed && r->expires_at != 0 && r->expires_at <= now;
}

bool
decide_is_past(const struct record *r, int64_t now)
{
	if (r->state == RECORD_EXPIRED)
		return r->expires_at != 0 && r->expires_at <= now;
	if (!is_over(r, now))
		return false;
	return !r->gone || r->expires_at + r->expired_retention <= now;
}

bool
decide_is_limit(enum decision decision)
{
	return decision == DECIDE_CROWDED || decision == DECIDE_OPEN ||
	    decision == DECIDE_NO_ROOM;
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

enum decision
decide(const struct record *r, bool same, int64_t now)
{
	if (r == NULL || decide_is_past(r, now))
		return DECIDE_RUN;
	if (!same)
		return DECIDE_MISMATCH;
	/* A marker already, though no pass has made it one yet. */
	if (is_over(r, now))
		return DECIDE_GONE;

	switch (r->state) {
	case RECORD_PENDING:
	case RECORD_IN_PROGRESS:
		return DECIDE_BUSY;
	case RECORD_COMPLETED:
		return r->kept ? DECIDE_REPLAY : DECIDE_NOT_KEPT;
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
