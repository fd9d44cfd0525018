/*
 * See store_outcome.h.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "store_change.h"
#include "store_outcome.h"

struct store_outcome *
store_outcome_new(struct store *s)
{
	struct outcome_change *o = calloc(1, store_base(s)->ops->outcome_size);

	if (o == NULL)
		return NULL;
	o->outcome.store = s;
	response_init(&o->outcome.response);
	buf_init(&o->outcome.errors, LIMIT_ERRORS);
	o->outcome.requeue = -1;
	return &o->outcome;
}

void
store_outcome_free(struct store_outcome *outcome)
{
	if (outcome == NULL)
		return;
	response_free(&outcome->response);
	buf_free(&outcome->errors);
	spool_free(outcome->body);
	log_request_clear(&outcome->log);
	free(outcome);
}

static struct outcome_change *
outcome_begin(struct store_outcome *outcome, enum step_verb verb, int64_t id)
{
	struct outcome_change *o = (struct outcome_change *)(void *)outcome;

	/* Callers make no others. */
	assert(outcome->requeue <= ROW_TIME_MAX);
	assert(outcome->state != RECORD_COMPLETED ||
	    (outcome->response.status >= 200 &&
		outcome->response.status <= 599));
	o->run = store_outcome_run;
	o->verb = verb;
	o->id = id;
	return o;
}

/* Changes the record by the function of step.h for that verb. */
static enum rc
outcome_step(const struct outcome_change *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct store_outcome *outcome = &o->outcome;
	struct step_outcome end = {
		.verb = o->verb,
		.state = outcome->state,
		.token = o->token,
		.retention = o->retention,
		.attempt = o->tries.attempt,
		.tries = o->tries.tries,
		.why = { .error = outcome->last_error,
		    .nothing_happened = outcome->nothing_happened,
		    .requeue = outcome->requeue },
	};
	struct rows_answer c;

	rows_answer(outcome, &c);
	end.answer = (struct step_answer){ c.keep, c.status, c.length };
	return step_outcome(r, &end, at, s);
}

/* Stores the answer that was not accepted, and the end of stderr, or deletes
 * those of an earlier attempt. */
static enum rc
outcome_refused(const struct outcome_change *o, struct tx *tx)
{
	const struct store_refused *r = &o->outcome.refused;
	const uint64_t n =
	    r->length < LIMIT_REFUSED ? r->length : LIMIT_REFUSED;
	const struct buf *errors = &o->outcome.errors;
	const bool any = r->is || errors->len > 0;
	int changed;

	if (!any && o->attempt <= 1)
		return RC_OK;
	if (any)
		tx_send(tx, TX_REFUSED_NEW, r->is ? "idddibb" : "idddiob",
		    o->id, o->attempt, r->exit_status, r->signal,
		    (int64_t)r->length, r->length > 0 ? r->bytes : "",
		    (size_t)n, errors->data, errors->len);
	else
		tx_send(tx, TX_DELETE_REFUSED, "i", o->id);
	return tx_changed(tx, &changed);
}

static enum rc
outcome_write(struct outcome_change *o, struct tx *tx, const struct record *was,
    const struct record *r, struct step *s)
{
	struct rows_answer c;
	enum rc rc;

	rows_answer(&o->outcome, &c);
	if (c.apart)
		c.nbody = 0;
	if (o->no_request)
		s->request = STEP_STAYS;
	rc = store_change_write(tx, was, r, s, &c);
	if (rc == RC_OK && !s->confirmed)
		rc = outcome_refused(o, tx);
	o->done.expires_at = r->expires_at;
	o->done.answered = s->confirmed;
	return rc;
}

/* Changes the record that was read, and frees it. */
static enum rc
outcome_change(struct outcome_change *o, struct tx *tx, struct record *r)
{
	const struct record was = *r;
	struct step s = { 0 };
	enum rc rc = outcome_step(o, r, tx->at, &s);

	if (rc == RC_OK && (s.answer == STEP_SET || s.confirmed))
		rc = tx->ops->body(tx, o, s.confirmed);
	if (rc == RC_OK)
		rc = outcome_write(o, tx, &was, r, &s);
	record_free(r);
	return rc;
}

enum rc
store_outcome_run(struct tx *tx, void *arg)
{
	struct outcome_change *o = arg;
	struct record r;
	enum rc rc;

	memset(&o->done, 0, sizeof(o->done));
	rc = store_change_read(tx, o->id, true, &r);
	return rc == RC_OK ? outcome_change(o, tx, &r) : rc;
}

bool
store_outcome_is_small(const struct outcome_change *o)
{
	struct rows_answer c;

	rows_answer(&o->outcome, &c);
	return o->verb == STEP_FINISH && o->attempt <= 1 &&
	    o->outcome.state == RECORD_COMPLETED && !o->outcome.refused.is &&
	    o->outcome.errors.len == 0 && !c.apart;
}

void
store_outcome_ask(struct tx *tx, const struct outcome_change *o)
{
	tx_send(tx, TX_RECORD_LOOK, "i", o->id);
}

enum rc
store_outcome_take(struct tx *tx, struct outcome_change *o)
{
	struct record r = { 0 };
	enum rc rc;

	memset(&o->done, 0, sizeof(o->done));
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, &r);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	if (r.state == RECORD_IN_PROGRESS)
		return outcome_change(o, tx, &r);
	record_free(&r);
	return RC_LOST;
}

bool
store_outcome_drop(struct store_outcome *outcome, int64_t id)
{
	outcome->refused.length = 0;
	if (!outcome->keep || outcome->response.body_len <= STORE_INLINE)
		return false;
	log_event(LOG_ERROR, "answer-not-kept", &outcome->log, LOG_I("id", id),
	    LOG_I("bytes", outcome->response.body_len),
	    LOG_S("why", rc_text(RC_FULL)));
	outcome->keep = false;
	return true;
}

/* --- the verbs ------------------------------------------------------------ */

struct outcome_change *
store_finish_begin(struct store_outcome *outcome,
    const struct store_lease *lease, int64_t retention)
{
	struct outcome_change *o =
	    outcome_begin(outcome, STEP_FINISH, lease->id);

	assert(outcome->state == RECORD_COMPLETED ||
	    outcome->state == RECORD_FAILED_RETRYABLE ||
	    outcome->state == RECORD_UNKNOWN);
	assert(strlen(lease->token) == RECORD_TOKEN_LEN);
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
	struct outcome_change *o =
	    store_finish_begin(*outcome, lease, retention);
	const enum rc rc = store_outcome_do(s, o, outcome);

	memset(done, 0, sizeof(*done));
	if (rc == RC_OK)
		*done = o->done;
	return rc;
}

enum rc
store_resolve(struct store *s, int64_t id, const struct store_tries *tries,
    struct store_outcome **outcome)
{
	struct outcome_change *o = outcome_begin(*outcome, STEP_RESOLVE, id);

	o->tries = *tries;
	return store_outcome_do(s, o, outcome);
}

enum rc
store_resolve_by_operator(
    struct store *s, int64_t id, int attempt, struct store_outcome **outcome)
{
	struct outcome_change *o =
	    outcome_begin(*outcome, STEP_RESOLVE_BY_OPERATOR, id);

	assert((*outcome)->state != RECORD_DEAD_LETTER);
	o->tries = (struct store_tries){ .attempt = attempt };
	return store_outcome_do(s, o, outcome);
}

enum rc
store_abandon(struct store *s, int64_t id, struct store_outcome **outcome)
{
	assert((*outcome)->state == RECORD_COMPLETED &&
	    (*outcome)->response.body_len <= STORE_PIECE);
	return store_outcome_do(
	    s, outcome_begin(*outcome, STEP_ABANDON, id), outcome);
}

/* --- what was begun, perhaps ---------------------------------------------- */

static struct store_outcome *
undo_new(struct store *s, int64_t id)
{
	struct store_outcome *outcome = store_outcome_new(s);

	if (outcome == NULL)
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("message", "no memory to take back what was begun"),
		    LOG_I("id", id));
	return outcome;
}

static void
undo_do(struct outcome_change *o)
{
	struct store_outcome *outcome = &o->outcome;

	o->unsure = true;
	(void)store_outcome_do(outcome->store, o, &outcome);
	store_outcome_free(outcome);
}

void
store_outcome_release(struct store *s, const struct store_lease *lease,
    int64_t retention, int64_t requeue)
{
	struct store_outcome *outcome = undo_new(s, lease->id);
	struct outcome_change *o;

	if (outcome == NULL)
		return;
	outcome->state = RECORD_FAILED_RETRYABLE;
	outcome->requeue = requeue;
	o = store_finish_begin(outcome, lease, retention);
	o->attempt = 0; /* what an earlier one was refused for stays */
	undo_do(o);
}

void
store_outcome_undo(
    struct store *s, tx_body *undo, int64_t id, int attempt, int64_t owner)
{
	struct store_outcome *outcome = undo_new(s, id);
	struct outcome_change *o;

	if (outcome == NULL)
		return;
	o = outcome_begin(outcome, STEP_FINISH, id);
	o->run = undo;
	o->attempt = attempt;
	o->owner = owner;
	undo_do(o);
}
