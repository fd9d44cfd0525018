/*
 * Resolve: a reconciler, a webhook or an operator has found out what a lost
 * attempt did.  The key has no lease.  The change names the attempt, and a
 * reconciler's also the number of tries begun when it read the key: if another
 * try was begun since then, or the key was settled, nothing changes.  An
 * operator may resolve dead letters, too.
 */
#include "config.h"

#include <string.h>

#include "store_check.h"
#include "store_impl.h"
#include "store_outcome.h"
#include "store_record.h"
#include "store_stage.h"

static enum rc
resolve_step(const struct outcome_write *o, struct record *r,
    struct step_time at, struct step *s)
{
	const struct step_reason why = {
		.error = o->outcome.last_error,
		.nothing_happened = true,
		.requeue = o->outcome.requeue,
	};
	struct step_answer answer;
	struct kept_columns c;

	kept_columns(&o->outcome, &c);
	answer = store_outcome_answer(&c);
	return step_resolve(r, o->outcome.state, &answer, &why, at, s);
}

/*
 * A large answer is written in pieces, as for an attempt (store_finish.c).  No
 * lease keeps others from settling the key meanwhile; the first one to settle
 * it wins, however many pieces the others have stored.
 */
static enum rc
resolve_settle(struct outcome_write *o, struct db *db, int64_t now)
{
	struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_record_read(db, o->id, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	if (!step_may_resolve(
		&r, o->tries.attempt, o->tries.tries, o->by_operator)) {
		rc = RC_LOST;
		goto out;
	}
	if (store_outcome_has_more(o)) {
		rc = store_outcome_piece(o, db);
		goto out;
	}
	rc = resolve_step(o, &r, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_outcome_change(o, db, &was, &r, &s);
out:
	record_free(&r);
	return rc;
}

static enum rc
resolve_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	enum rc rc;

	store_outcome_begin_run(o);
	rc = resolve_settle(o, db, now);
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
