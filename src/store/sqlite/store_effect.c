/*
 * Effects in the outbox: takes one for a try, records the result of the try,
 * and makes the changes that operators ask for.
 *
 * Invariants, beside what schema.sql says of the columns:
 *
 *   1. If a key has pending effects, exactly one of them has the turn: it has
 *      either an owner or a time.  A statement that takes the turn from one
 *      gives it to the lowest pending number, in the same transaction.
 *   2. The end of a try names that try, by its number and its owner.  If the
 *      effect was freed meanwhile, because its owner seemed to be dead, the
 *      end changes nothing.
 *   3. An effect outlives its key until it is delivered, or an operator drops
 *      it; a delivered one is deleted with its key.
 */
#include "config.h"

#include <assert.h>

#include "clock.h"
#include "fault.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_operator.h"
#include "store_effect.h"

struct effect_write {
	struct write w;
	int64_t id;
	/* of this process's try */
	int64_t key_id, owner;
	int attempts; /* begun; at the beginning of a try, before that one */
	const struct effect_end *end;
};

static enum rc
pass_turn(struct db *db, int64_t key_id, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_TURN);
	enum rc rc;

	db_bindf(s, "ii", key_id, now);
	rc = db_change_one(s, RC_NOTFOUND);
	return rc == RC_NOTFOUND ? RC_OK : rc; /* it was the last */
}

/* Steps a statement that has one parameter and returns no row. */
static enum rc
step_with(struct db *db, enum query query, int64_t id)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "i", id);
	return db_step_done(s);
}

/* --- a try ---------------------------------------------------------------- */

static enum rc
begin_run(struct write *w, struct db *db, int64_t now)
{
	const struct effect_write *e = (struct effect_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_BEGIN);

	/* If the effect's row were lost, so would be the record of its try. */
	w->did |= WRITE_SYNC_FIRST;
	db_bindf(s, "idiii", e->id, e->attempts, e->owner, clock_wall(), now);
	return db_change_one(s, RC_LOST);
}

static enum rc
delivered(const struct effect_write *e, struct db *db, int64_t now)
{
	const struct effect_end *end = e->end;
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_DELIVERED);
	enum rc rc;

	db_bindf(s, "idiio", e->id, e->attempts, e->owner, clock_wall(),
	    end->reference, end->reference_len);
	rc = db_change_one(s, RC_LOST);
	if (rc == RC_OK)
		rc = step_with(db, QUERY_DELETE_PAYLOAD, e->id);
	if (rc == RC_OK)
		rc = step_with(db, QUERY_EFFECT_GONE, e->id);
	return rc == RC_OK ? pass_turn(db, e->key_id, now) : rc;
}

static enum rc
dead(const struct effect_write *e, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_DEAD);
	enum rc rc;

	db_bindf(s, "idiis", e->id, e->attempts, e->owner, clock_wall(),
	    e->end->last_error);
	rc = db_change_one(s, RC_LOST);
	return rc == RC_OK ? pass_turn(db, e->key_id, now) : rc;
}

/* The effect keeps its turn, unless an earlier effect is pending again. */
static enum rc
again(const struct effect_write *e, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_AGAIN);
	enum rc rc;

	db_bindf(s, "idiisi", e->id, e->attempts, e->owner, clock_wall(),
	    e->end->last_error, now + e->end->after);
	rc = db_change_one(s, RC_LOST);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_EFFECT_EARLIER);
	db_bindf(s, "ii", e->key_id, e->id);
	rc = db_onef(s, "-");
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = step_with(db, QUERY_EFFECT_YIELD, e->id);
	return rc == RC_OK ? pass_turn(db, e->key_id, now) : rc;
}

static enum rc
end_run(struct write *w, struct db *db, int64_t now)
{
	const struct effect_write *e = (struct effect_write *)w;

	w->did |= WRITE_MADE_WORK;
	switch (e->end->state) {
	case EFFECT_PENDING:
		return again(e, db, now);
	case EFFECT_DELIVERED:
		return delivered(e, db, now);
	case EFFECT_DEAD_LETTER:
		return dead(e, db, now);
	case EFFECT_NONE:
		break;
	}
	assert(!"no end of a try");
	return RC_INVALID;
}

enum rc
sqlite_effect_begin(struct store *store, struct effect *effect)
{
	struct effect_write e = {
		.w.run = begin_run,
		.w.flags = WRITE_NEW,
		.id = effect->id,
		.attempts = effect->attempts,
	};
	struct liveness *liveness;
	enum rc rc;

	/* As for a lease: if no process sees the owner's lock, the effect would
	 * be tried twice. */
	if ((rc = store_may_lease(store, NULL, &liveness)) != RC_OK)
		return rc;
	e.owner = liveness_self(liveness);
	rc = committer_do(store->committer, &e.w);
	if (rc == RC_OK)
		effect->attempts++;
	return rc;
}

enum rc
sqlite_effect_end(struct store *store, const struct effect *effect,
    const struct effect_end *end)
{
	struct effect_write e = {
		.w.run = end_run,
		.id = effect->id,
		.key_id = effect->key_id,
		.attempts = effect->attempts,
		.end = end,
	};
	struct liveness *liveness;
	enum rc rc;

	if (end->state == EFFECT_NONE || end->after < 0 ||
	    end->after > STORE_LONGEST)
		return RC_INVALID;
	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	e.owner = liveness_self(liveness);
	return committer_do(store->committer, &e.w);
}

enum rc
store_effect_release(struct db *db, int64_t owner, int64_t now, int *n)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_FREE);
	enum rc rc;
	int freed;

	db_bindf(s, "iiis", owner, now, clock_wall(),
	    "oncewrap was lost while it was tried");
	rc = db_update(s, &freed);
	if (rc == RC_OK && freed > 0) {
		*n += freed;
		FAULT(RECOVER_EFFECTS);
	}
	return rc;
}

/* --- for operators -------------------------------------------------------- */

/* This effect is due now, or the effect of its key that comes before it. */
static enum rc
retry_run(struct write *w, struct db *db, int64_t now)
{
	const struct effect_write *e = (struct effect_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_RETRY);
	int64_t key_id;
	enum rc rc;

	w->did |= WRITE_MADE_WORK;
	db_bindf(s, "ii", e->id, clock_wall());
	rc = db_onef(s, "i", &key_id);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	s = db_stmt(db, QUERY_EFFECT_BUSY);
	db_bindf(s, "i", key_id);
	rc = db_onef(s, "-");
	if (rc != RC_NOTFOUND)
		return rc; /* the end of that try passes the turn on */
	rc = step_with(db, QUERY_EFFECT_HALT, key_id);
	return rc == RC_OK ? pass_turn(db, key_id, now) : rc;
}

static enum rc
effect_drop_run(struct write *w, struct db *db, int64_t now)
{
	const struct effect_write *e = (struct effect_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_DROP);
	int64_t key_id;
	bool had_turn;
	enum rc rc;

	w->did |= WRITE_MADE_WORK;
	db_bindf(s, "i", e->id);
	rc = db_onef(s, "iv", &key_id, &had_turn);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	rc = step_with(db, QUERY_DELETE_PAYLOAD, e->id);
	return rc == RC_OK && had_turn ? pass_turn(db, key_id, now) : rc;
}

enum rc
sqlite_effect_retry(struct store *store, int64_t id)
{
	struct effect_write e = { .w.run = retry_run, .id = id };

	return committer_do(store->committer, &e.w);
}

enum rc
sqlite_effect_drop(struct store *store, int64_t id)
{
	struct effect_write e = { .w.run = effect_drop_run, .id = id };

	return committer_do(store->committer, &e.w);
}
