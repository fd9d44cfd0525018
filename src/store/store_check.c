/*
 * See store_check.h.
 */
#include "config.h"

#include <string.h>

#include "kept.h"
#include "store_check.h"

static bool
is_duration(int64_t ms)
{
	return ms >= 0 && ms <= STORE_LONGEST;
}

bool
store_check_reservation(const struct store_reservation *what, bool leased)
{
	return is_duration(what->lease) && is_duration(what->retention) &&
	    is_duration(what->expired_retention) &&
	    is_duration(what->reconcile_delay) &&
	    (!leased ||
		(what->attempt == NULL ? what->on_crash != CONF_CRASH_RESUME
				       : what->on_crash == CONF_CRASH_RESUME ||
			    what->reconcile_delay > 0));
}

/* Whether the outcome, of that state, can be stored. */
static bool
outcome_is_sound(const struct store_outcome *outcome)
{
	return outcome->requeue <= STORE_LONGEST &&
	    (outcome->state != RECORD_COMPLETED ||
		(outcome->response.status >= 200 &&
		    outcome->response.status <= 599));
}

bool
store_check_finish(const struct store_lease *lease, int64_t retention,
    const struct store_outcome *outcome)
{
	if (lease->id <= 0 || strlen(lease->token) != RECORD_TOKEN_LEN ||
	    !outcome_is_sound(outcome))
		return false;
	switch (outcome->state) {
	case RECORD_COMPLETED:
	case RECORD_FAILED_RETRYABLE:
		return is_duration(retention);
	case RECORD_UNKNOWN:
		return true;
	case RECORD_NONE:
	case RECORD_PENDING:
	case RECORD_IN_PROGRESS:
	case RECORD_DEAD_LETTER:
	case RECORD_EXPIRED:
		break;
	}
	return false;
}

bool
store_check_resolve(
    int64_t id, const struct store_outcome *outcome, bool by_operator)
{
	const enum record_state to = outcome->state;

	return id > 0 && outcome_is_sound(outcome) &&
	    (to == RECORD_COMPLETED || to == RECORD_FAILED_RETRYABLE ||
		(to == RECORD_DEAD_LETTER && !by_operator));
}

bool
store_check_abandon(int64_t id, const struct store_outcome *outcome)
{
	return id > 0 && outcome->state == RECORD_COMPLETED &&
	    outcome->response.body_len <= STORE_PIECE &&
	    outcome_is_sound(outcome);
}
