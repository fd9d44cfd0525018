/*
 * See store_outcome.h.
 */
#include "config.h"

#include <string.h>

#include "store_change.h"
#include "store_outcome.h"

void
store_outcome_init(struct outcome_change *o, struct store *s)
{
	memset(o, 0, sizeof(*o));
	o->outcome.store = s;
	response_init(&o->outcome.response);
	buf_init(&o->outcome.errors, LIMIT_ERRORS);
	o->outcome.requeue = -1;
}

void
store_outcome_clear(struct outcome_change *o)
{
	response_free(&o->outcome.response);
	buf_free(&o->outcome.errors);
	spool_free(o->outcome.body);
	log_request_clear(&o->outcome.log);
}

struct outcome_change *
store_outcome_begin(
    struct store_outcome *outcome, outcome_step *step, int64_t id)
{
	struct outcome_change *o = (struct outcome_change *)(void *)outcome;

	o->step = step;
	o->id = id;
	return o;
}

struct step_answer
store_outcome_answer(const struct outcome_change *o)
{
	struct kept_columns c;

	kept_columns(&o->outcome, &c);
	return (struct step_answer){
		.keep = c.keep,
		.status = c.status,
		.length = c.length,
	};
}

struct step_reason
store_outcome_reason(const struct outcome_change *o)
{
	return (struct step_reason){
		.error = o->outcome.last_error,
		.nothing_happened = o->outcome.nothing_happened,
		.requeue = o->outcome.requeue,
	};
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
    const struct record *r, const struct step *s)
{
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	if (c.apart && tx->ops->body != NULL)
		c.nbody = 0;
	rc = store_change_write(tx, was, r, s, &c);
	if (rc == RC_OK && !s->confirmed)
		rc = outcome_refused(o, tx);
	o->done.expires_at = r->expires_at;
	o->done.answered = s->confirmed;
	return rc;
}

/*
 * If the transaction that completes the key wrote all of a large answer, every
 * other change would wait for it, where they share a transaction.  Then only a
 * piece is stored, and the key stays as it is.
 */
enum rc
store_outcome_run(struct tx *tx, void *arg)
{
	struct outcome_change *o = arg;
	struct step s = { 0 };
	struct record r, was;
	bool more = false;
	enum rc rc;

	memset(&o->done, 0, sizeof(o->done));
	rc = store_change_read(tx, o->id, true, &r);
	if (rc != RC_OK)
		return rc;
	was = r;
	rc = o->step(o, &r, tx->at, &s);
	if (rc == RC_OK && tx->ops->body != NULL &&
	    (s.answer == STEP_SET || s.confirmed))
		rc = tx->ops->body(tx, o, s.confirmed, &more);
	if (rc == RC_OK && !more)
		rc = outcome_write(o, tx, &was, &r, &s);
	record_free(&r);
	return rc;
}
