/*
 * Resolve: a reconciler, a webhook or an operator has found out what a lost
 * attempt did.  The key has no lease.  The change names the attempt, and a
 * reconciler's also the number of tries begun when it read the key: if another
 * try was begun since then, or the key was settled, nothing changes.  An
 * operator may resolve dead letters, too.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_outcome.h"
#include "store_stage.h"
#include "verb.h"

static enum rc
resolve_change(const struct outcome_write *o, struct db_stmt *s)
{
	const enum record_state to = o->outcome.state;

	if (o->by_operator && !record_may_change(RECORD_DEAD_LETTER, to, false))
		return RC_INVALID;
	return verb_change_state(s, RECORD_UNKNOWN, to, RC_LOST);
}

static enum rc
resolve_completed(struct outcome_write *o, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_RESOLVE_COMPLETED);
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	db_bindf(s, "idddiidddditoo", o->id, o->tries.attempt, o->tries.tries,
	    o->by_operator, clock_wall(), now, c.keep, c.status, c.kind,
	    STORE_RESPONSE_VERSION, c.length, c.reason, c.fields, c.nfields,
	    c.body, c.nbody);
	rc = resolve_change(o, s);
	return rc == RC_OK ? store_outcome_completed(o, db, &c) : rc;
}

static enum rc
resolve_released(struct outcome_write *o, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_RESOLVE_RELEASED);
	const int64_t requeue = o->outcome.requeue;
	enum rc rc;

	db_bindf(s, "idddiitz", o->id, o->tries.attempt, o->tries.tries,
	    o->by_operator, clock_wall(), now, o->outcome.last_error,
	    requeue >= 0 ? now + requeue : 0);
	rc = resolve_change(o, s);
	return rc == RC_OK ? store_kept_released(db, o->id) : rc;
}

static enum rc
given_up(const struct outcome_write *o, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_RESOLVE_DEAD);

	db_bindf(s, "iddis", o->id, o->tries.attempt, o->tries.tries,
	    clock_wall(), o->outcome.last_error);
	return verb_change_state(
	    s, RECORD_UNKNOWN, RECORD_DEAD_LETTER, RC_LOST);
}

static enum rc
resolve_settle(struct outcome_write *o, struct db *db, int64_t now)
{
	if (o->outcome.state == RECORD_DEAD_LETTER)
		return given_up(o, db);
	return o->outcome.state == RECORD_COMPLETED
	    ? resolve_completed(o, db, now)
	    : resolve_released(o, db, now);
}

/*
 * Writes one piece of a large answer, as for an attempt (store_finish.c).  No
 * lease keeps others from settling the key meanwhile; the first one to settle
 * it wins, however many pieces the others have stored.
 */
static enum rc
resolve_piece(struct outcome_write *o, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_RESOLVABLE);
	enum rc rc;

	db_bindf(
	    s, "iddd", o->id, o->tries.attempt, o->tries.tries, o->by_operator);
	rc = db_onef(s, "-");
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	return store_outcome_piece(o, db);
}

static enum rc
resolve_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	enum rc rc;

	store_outcome_begin_run(o);
	if (store_outcome_has_more(o))
		rc = resolve_piece(o, db);
	else {
		w->did |= WRITE_ENDED_KEY;
		if (o->outcome.requeue >= 0)
			w->did |= WRITE_MADE_WORK;
		rc = resolve_settle(o, db, now);
	}
	/* What a lost run changes is rolled back.  So this one is not lost. */
	if (rc == RC_LOST && o->stage.stored > 0) {
		o->lost = true;
		rc = store_stage_drop(&o->stage, db);
	}
	return rc;
}

static enum rc
resolve_resolve(struct store *store, int64_t id,
    const struct store_tries *tries, bool by_operator,
    struct store_outcome **outcome)
{
	const enum record_state to = (*outcome)->state;
	const struct response *r = &(*outcome)->response;
	struct outcome_write *o;
	enum rc rc;

	if (!store_check_resolve(id, *outcome, by_operator))
		return RC_INVALID;
	o = store_outcome_write(*outcome, resolve_run, id);
	o->tries = *tries;
	o->by_operator = by_operator;
	if (to == RECORD_COMPLETED && (*outcome)->keep) {
		rc = store_stage_init_answer(
		    &o->stage, store, r->body, r->body_len);
		if (rc != RC_OK)
			return rc;
		o->w.flags |= store_stage_flags(&o->stage);
	}
	rc = store_outcome_do(store->committer, o, outcome);
	return rc == RC_OK && o->lost ? RC_LOST : rc;
}

enum rc
sqlite_resolve(struct store *store, int64_t id, const struct store_tries *tries,
    struct store_outcome **outcome)
{
	return resolve_resolve(store, id, tries, false, outcome);
}

enum rc
sqlite_resolve_by_operator(struct store *store, int64_t id, int attempt,
    struct store_outcome **outcome)
{
	const struct store_tries tries = { .attempt = attempt };

	return resolve_resolve(store, id, &tries, true, outcome);
}
