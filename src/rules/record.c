/*
 * The record of a key: its states, the one table of changes, and the
 * invariants of every record that is read or about to be written.
 *
 * Invariants, checked by record_is_sound():
 *
 *  1. A record has an identity (0 < id <= RECORD_ID_MAX), a spec for its
 *     fingerprint and a downstream key, and its state is not RECORD_NONE.
 *  2. It has been attempted at least once, with two exceptions: it is pending;
 *     or it was never taken up, and its retention completed it, and perhaps
 *     made it a marker later.
 *  3. It has a token exactly while it is in_progress, or unconfirmed: so an
 *     attempt that lost its lease names a token that no record has.
 *  4. A completed record has the status of a final answer.  Only a completed
 *     record has an answer to replay, or is unconfirmed.
 *  5. in_progress, unknown and dead_letter never end by age.
 *  6. expires_at is no time before store time began.
 *  7. Only an accepted record that is pending or failed_retryable waits for a
 *     worker.
 *  8. Only a released record that waits for no worker, or a marker that it
 *     became, has no fingerprint.
 *  9. A marker's time is not negative, and the name of a status resource is
 *     whole, if it has one.
 *
 * This file knows no SQL, no content of fingerprints and no response.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

static const char *const names[] = { RECORD_STATES(WORDS_WORD) };

/* The causes of a change. */
enum by {
	BY_RULE = 1,    /* a request, a sweep, reconciliation, or age */
	BY_OPERATOR = 2 /* oncectl forget */
};

/* A change that is not in this table is not allowed. */
static const struct change {
	enum record_state from, to;
	unsigned by;
} changes[] = {
	/* reserved, or accepted with 202 */
	{ RECORD_NONE, RECORD_PENDING, BY_RULE },
	{ RECORD_NONE, RECORD_IN_PROGRESS, BY_RULE },
	/* taken up; or not taken up within its retention: 408 */
	{ RECORD_PENDING, RECORD_IN_PROGRESS, BY_RULE },
	{ RECORD_PENDING, RECORD_COMPLETED, BY_RULE },
	/* the end of an attempt */
	{ RECORD_IN_PROGRESS, RECORD_COMPLETED, BY_RULE },
	{ RECORD_IN_PROGRESS, RECORD_FAILED_RETRYABLE, BY_RULE },
	{ RECORD_IN_PROGRESS, RECORD_UNKNOWN, BY_RULE },
	/* the next attempt */
	{ RECORD_FAILED_RETRYABLE, RECORD_IN_PROGRESS, BY_RULE },
	/* kept as a marker */
	{ RECORD_FAILED_RETRYABLE, RECORD_EXPIRED, BY_RULE },
	{ RECORD_COMPLETED, RECORD_EXPIRED, BY_RULE },
	/* reconciled, or given up */
	{ RECORD_UNKNOWN, RECORD_COMPLETED, BY_RULE },
	{ RECORD_UNKNOWN, RECORD_FAILED_RETRYABLE, BY_RULE },
	{ RECORD_UNKNOWN, RECORD_DEAD_LETTER, BY_RULE },
	{ RECORD_DEAD_LETTER, RECORD_COMPLETED, BY_RULE },
	{ RECORD_DEAD_LETTER, RECORD_FAILED_RETRYABLE, BY_RULE },
	/* deleted by age; an operator may forget all but a running one */
	{ RECORD_COMPLETED, RECORD_NONE, BY_RULE | BY_OPERATOR },
	{ RECORD_FAILED_RETRYABLE, RECORD_NONE, BY_RULE | BY_OPERATOR },
	{ RECORD_EXPIRED, RECORD_NONE, BY_RULE | BY_OPERATOR },
	{ RECORD_PENDING, RECORD_NONE, BY_OPERATOR },
	{ RECORD_UNKNOWN, RECORD_NONE, BY_OPERATOR },
	{ RECORD_DEAD_LETTER, RECORD_NONE, BY_OPERATOR },
};

void
record_free(struct record *r)
{
	if (r == NULL)
		return;
	free(r->scope);
	free(r->path);
	free(r->key);
	free(r->peer);
	free(r->fingerprint_spec);
	free(r->last_error);
	r->scope = r->path = r->key = r->peer = NULL;
	r->fingerprint_spec = r->last_error = NULL;
}

const char *
record_state_name(enum record_state state)
{
	assert((unsigned)state < RECORD_NSTATES);
	return names[state];
}

bool
record_state_parse(const char *name, enum record_state *state)
{
	const unsigned i = words_find(names, RECORD_NSTATES, name);

	if (i < RECORD_NSTATES)
		*state = (enum record_state)i;
	return i < RECORD_NSTATES;
}

bool
record_may_change(
    enum record_state from, enum record_state to, bool by_operator)
{
	unsigned by = by_operator ? BY_OPERATOR : BY_RULE;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].from == from && changes[i].to == to)
			return (changes[i].by & by) != 0;
	return false;
}

static bool
ends_by_age(enum record_state state)
{
	switch (state) {
	case RECORD_PENDING:
	case RECORD_COMPLETED:
	case RECORD_FAILED_RETRYABLE:
	case RECORD_EXPIRED:
		return true;
	case RECORD_NONE:
	case RECORD_IN_PROGRESS:
	case RECORD_UNKNOWN:
	case RECORD_DEAD_LETTER:
		break;
	}
	return false;
}

/* Whether the record may be in its state without any attempt. */
static bool
may_be_unattempted(const struct record *r)
{
	return r->state == RECORD_PENDING ||
	    (r->accepted &&
		(r->state == RECORD_COMPLETED || r->state == RECORD_EXPIRED));
}

bool
record_has_fingerprint(const struct record *r)
{
	return r->fingerprint_spec[0] != '\0';
}

bool
record_is_sound(const struct record *r)
{
	const bool leased = r->state == RECORD_IN_PROGRESS || r->unconfirmed;
	const bool completed = r->state == RECORD_COMPLETED;
	const size_t resource = strnlen(r->resource, sizeof(r->resource));

	/* 1 */
	if (r->id <= 0 || r->id > RECORD_ID_MAX || r->state == RECORD_NONE ||
	    (unsigned)r->state >= RECORD_NSTATES ||
	    r->fingerprint_spec == NULL ||
	    strnlen(r->downstream, sizeof(r->downstream)) != RECORD_UUID_LEN)
		return false;
	/* 2 */
	if (r->attempt < (may_be_unattempted(r) ? 0 : 1))
		return false;
	/* 3 */
	if (strnlen(r->token, sizeof(r->token)) !=
	    (leased ? RECORD_TOKEN_LEN : 0))
		return false;
	/* 4 */
	if (completed ? r->status < 200 || r->status > 599
		      : r->replayable || r->unconfirmed)
		return false;
	/* 5 and 6 */
	if (r->expires_at < 0 || (r->expires_at > 0 && !ends_by_age(r->state)))
		return false;
	/* 7 */
	if (r->queued &&
	    (!r->accepted ||
		(r->state != RECORD_PENDING &&
		    r->state != RECORD_FAILED_RETRYABLE)))
		return false;
	/* 8 */
	if (!record_has_fingerprint(r) && r->state != RECORD_EXPIRED &&
	    (r->state != RECORD_FAILED_RETRYABLE || r->queued))
		return false;
	/* 9 */
	return r->expired_retention >= 0 &&
	    (resource == 0 || resource == RECORD_RESOURCE_LEN);
}

void
record_check(const struct record *r)
{
	assert(r != NULL && record_is_sound(r));
}
