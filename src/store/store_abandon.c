/*
 * Abandon: completes an accepted key that no worker has run within its
 * retention.  The response is one that oncewrap makes, and short.
 */
#include "config.h"

#include <string.h>

#include "store_check.h"
#include "store_ops.h"
#include "store_outcome.h"

static enum rc
abandon_step(const struct outcome_change *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct step_answer answer = store_outcome_answer(o);

	return step_abandon(r, &answer, at, s);
}

enum rc
store_abandon(struct store *s, int64_t id, struct store_outcome **outcome)
{
	if (!store_check_abandon(id, *outcome))
		return RC_INVALID;
	return store_outcome_do(
	    s, store_outcome_begin(*outcome, abandon_step, id), outcome);
}

struct abandoned {
	struct record *job;
	int64_t now;
};

static enum rc
abandoned_run(struct tx *tx, void *arg)
{
	const struct abandoned *a = arg;
	enum rc rc;

	tx_send(tx, TX_JOB_ABANDONED, "i", a->now);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, a->job);
	return rc;
}

enum rc
store_job_abandoned(struct store *s, struct record *job)
{
	struct abandoned a = { job, store_now(s) };

	memset(job, 0, sizeof(*job));
	return store_tx_look(s, abandoned_run, &a);
}
