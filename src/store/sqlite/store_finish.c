/*
 * Finish: the outcome of an attempt that has a lease.  Every change names the
 * attempt's token: an attempt that has lost its lease changes nothing.
 */
#include "config.h"

#include <string.h>

#include "store_check.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_outcome.h"
#include "store_record.h"

/* Stores the answer that was not accepted, or deletes that of an earlier
 * attempt. */
static enum rc
refused(const struct outcome_write *o, struct db *db)
{
	const struct store_refused *r = &o->outcome.refused;
	struct db_stmt *s;
	uint64_t n;

	if (!r->is)
		return o->attempt > 1 ? store_kept_delete_refused(db, o->id)
				      : RC_OK;
	s = db_stmt(db, QUERY_REFUSED_NEW);
	n = r->length < LIMIT_REFUSED ? r->length : LIMIT_REFUSED;
	db_bindf(s, "idddib", o->id, o->attempt, r->exit_status, r->signal,
	    (int64_t)r->length, r->length > 0 ? r->bytes : "", (size_t)n);
	return db_step_done(s);
}

/*
 * Writes one piece of a large response.  If the transaction that completes the
 * key wrote all of it, every other write would wait for it.  So each piece is
 * written in a transaction together with other writes.  The transaction that
 * completes the key writes the last piece, and its sync makes the earlier
 * commits durable too.
 */
static bool
finish_is_piece(const struct outcome_write *o, const struct record *r)
{
	return store_outcome_has_more(o) && r->state == RECORD_IN_PROGRESS &&
	    strcmp(r->token, o->token) == 0;
}

static enum rc
finish_step(const struct outcome_write *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct store_outcome *outcome = &o->outcome;
	const struct step_reason why = {
		.error = outcome->last_error,
		.nothing_happened = outcome->nothing_happened,
		.requeue = outcome->requeue,
	};
	struct step_answer answer;
	struct kept_columns c;

	if (outcome->state == RECORD_UNKNOWN)
		return step_unknown(r, o->token, &why, at, s);
	if (outcome->state == RECORD_FAILED_RETRYABLE)
		return step_release(r, o->token, o->retention, &why, at, s);
	kept_columns(outcome, &c);
	answer = store_outcome_answer(&c);
	return step_complete(r, o->token, o->retention, &answer, at, s);
}

static enum rc
finish_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	struct step s = { 0 };
	struct record r, was;
	enum rc rc;

	store_outcome_begin_run(o);
	memset(&o->done, 0, sizeof(o->done));
	rc = store_record_read(db, o->id, &r);
	if (rc != RC_OK)
		return rc;
	was = r;
	if (finish_is_piece(o, &r)) {
		rc = store_outcome_piece(o, db);
		goto out;
	}
	rc = finish_step(o, &r, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_outcome_change(o, db, &was, &r, &s);
	if (rc == RC_OK && !s.confirmed)
		rc = refused(o, db);
	o->done.expires_at = r.expires_at;
	o->done.answered = s.confirmed;
out:
	record_free(&r);
	return rc;
}

enum rc
sqlite_finish(struct store *store, const struct store_lease *lease,
    int64_t retention, struct store_outcome **outcome,
    struct store_finished *done)
{
	struct outcome_write *o;
	enum rc rc;

	memset(done, 0, sizeof(*done));
	if (!store_check_finish(lease, retention, *outcome))
		return RC_INVALID;
	o = store_outcome_write(*outcome, finish_run, lease->id);
	memcpy(o->token, lease->token, sizeof(o->token));
	o->attempt = lease->attempt;
	o->retention = retention;
	if ((*outcome)->keep && (*outcome)->response.body_len >= STORE_LARGE)
		o->w.flags |= WRITE_LARGE;
	rc = store_outcome_do(store->committer, o, outcome);
	if (rc == RC_OK)
		*done = o->done;
	return rc;
}
