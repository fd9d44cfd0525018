/*
 * Finish: the outcome of an attempt that has a lease.  Every change names the
 * attempt's token: an attempt that has lost its lease changes nothing.
 */
#include "config.h"

#include <string.h>

#include "store_check.h"
#include "store_outcome.h"

static enum rc
finish_step(const struct outcome_change *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct step_answer answer = store_outcome_answer(o);
	const struct step_reason why = store_outcome_reason(o);

	if (o->outcome.state == RECORD_UNKNOWN)
		return step_unknown(r, o->token, &why, at, s);
	if (o->outcome.state == RECORD_FAILED_RETRYABLE)
		return step_release(r, o->token, o->retention, &why, at, s);
	return step_complete(r, o->token, o->retention, &answer, at, s);
}

struct outcome_change *
store_finish_begin(struct store_outcome *outcome,
    const struct store_lease *lease, int64_t retention)
{
	struct outcome_change *o =
	    store_outcome_begin(outcome, finish_step, lease->id);

	memcpy(o->token, lease->token, sizeof(o->token));
	o->attempt = lease->attempt;
	o->no_request = lease->no_request;
	o->retention = retention;
	return o;
}

enum rc
store_finish(struct store *s, const struct store_lease *lease,
    int64_t retention, struct store_outcome **outcome,
    struct store_finished *done)
{
	struct outcome_change *o;
	enum rc rc;

	memset(done, 0, sizeof(*done));
	if (!store_check_finish(lease, retention, *outcome))
		return RC_INVALID;
	o = store_finish_begin(*outcome, lease, retention);
	rc = store_outcome_do(s, o, outcome);
	if (rc == RC_OK)
		*done = o->done;
	return rc;
}
