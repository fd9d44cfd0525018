/*
 * Finish: the outcome of an attempt that has a lease.  Every change names the
 * attempt's token: an attempt that has lost its lease changes nothing.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_outcome.h"
#include "verb.h"

/*
 * Writes one piece of a large response.  If the transaction that completes the
 * key wrote all of it, every other write would wait for it.  So each piece is
 * written in a transaction together with other writes.  The transaction that
 * completes the key writes the last piece, and its sync makes the earlier
 * commits durable too.
 */
static enum rc
piece(struct outcome_write *o, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_LEASED);
	enum rc rc;

	db_bindf(s, "is", o->id, o->token);
	rc = db_onef(s, "-");
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	return store_outcome_piece(o, db);
}

static enum rc
finish_completed(struct outcome_write *o, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_FINISH_COMPLETED);
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	db_bindf(s, "isiidddditoo", o->id, o->token, clock_wall(),
	    o->done.expires_at, c.keep, c.status, c.kind,
	    STORE_RESPONSE_VERSION, c.length, c.reason, c.fields, c.nfields,
	    c.body, c.nbody);
	rc =
	    verb_change_state(s, RECORD_IN_PROGRESS, RECORD_COMPLETED, RC_LOST);
	return rc == RC_OK ? store_outcome_completed(o, db, &c) : rc;
}

static enum rc
finish_released(struct outcome_write *o, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_FINISH_RELEASED);
	const int64_t requeue = o->outcome.requeue;
	const int64_t pause = requeue > 0 ? requeue : 0;
	enum rc rc;

	/* The pause before the next attempt is not part of the retention. */
	db_bindf(s, "isiitz", o->id, o->token, clock_wall(),
	    o->done.expires_at + pause, o->outcome.last_error,
	    requeue >= 0 ? now + requeue : 0);
	rc = verb_change_state(
	    s, RECORD_IN_PROGRESS, RECORD_FAILED_RETRYABLE, RC_LOST);
	return rc == RC_OK ? store_kept_released(db, o->id) : rc;
}

static enum rc
finish_finish(struct outcome_write *o, struct db *db, int64_t now)
{
	o->done.expires_at = 0;
	if (o->outcome.state == RECORD_UNKNOWN)
		return store_outcome_unknown(
		    db, o->id, o->token, o->outcome.last_error, now);
	o->done.expires_at = now + o->retention;
	return o->outcome.state == RECORD_COMPLETED
	    ? finish_completed(o, db)
	    : finish_released(o, db, now);
}

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

/* The attempt may have stored its own response, which stands whatever its end
 * is.  What its handler has committed must be durable first. */
static enum rc
confirm(struct outcome_write *o, struct db *db, int64_t now)
{
	enum rc rc = store_outcome_confirm(
	    db, o->id, o->token, now, &o->done.expires_at);

	if (rc == RC_OK) {
		o->done.answered = true;
		o->w.did |= WRITE_SYNC_FIRST;
	}
	return rc;
}

static enum rc
finish_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	enum rc rc;

	store_outcome_begin_run(o);
	memset(&o->done, 0, sizeof(o->done));
	if (store_outcome_has_more(o) && (rc = piece(o, db)) != RC_LOST)
		return rc;
	rc = finish_finish(o, db, now);
	if (rc == RC_OK)
		rc = refused(o, db);
	else if (rc == RC_LOST)
		rc = confirm(o, db, now);
	w->did |= WRITE_ENDED_KEY;
	if (o->outcome.requeue >= 0)
		w->did |= WRITE_MADE_WORK;
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
