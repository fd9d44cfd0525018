/*
 * The outbox, within a transaction: takes an effect for a try, and records the
 * result of the try.
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
#include "store_ops.h"

static enum rc
pass_turn(struct db *db, int64_t key_id, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_TURN);
	enum rc rc;

	db_bind_int(s, 1, key_id);
	db_bind_int(s, 2, now);
	rc = store_ops_change_one(s, RC_NOTFOUND);
	return rc == RC_NOTFOUND ? RC_OK : rc; /* it was the last */
}

/* Steps a statement that has one parameter and returns no row. */
static enum rc
step_with(struct db *db, enum query query, int64_t id)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bind_int(s, 1, id);
	return db_step_done(s);
}

static enum rc
begin(const struct op_effect *op, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_BEGIN);

	db_bind_int(s, 1, op->id);
	db_bind_int(s, 2, op->attempts);
	db_bind_int(s, 3, op->owner);
	db_bind_int(s, 4, clock_wall());
	db_bind_int(s, 5, now);
	return store_ops_change_one(s, RC_LOST);
}

/* The statement that ends a try in that way, with its first four parameters
 * bound. */
static struct db_stmt *
end_stmt(const struct op_effect *op, struct db *db, enum query query)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bind_int(s, 1, op->id);
	db_bind_int(s, 2, op->attempts);
	db_bind_int(s, 3, op->owner);
	db_bind_int(s, 4, clock_wall());
	return s;
}

static enum rc
delivered(const struct op_effect *op, struct db *db, int64_t now)
{
	const struct store_effect_end *end = op->end;
	struct db_stmt *s = end_stmt(op, db, QUERY_EFFECT_DELIVERED);
	enum rc rc;

	if (end->reference_len > 0)
		db_bind_blob(s, 5, end->reference, end->reference_len);
	rc = store_ops_change_one(s, RC_LOST);
	if (rc == RC_OK)
		rc = step_with(db, QUERY_DELETE_PAYLOAD, op->id);
	if (rc == RC_OK)
		rc = step_with(db, QUERY_EFFECT_GONE, op->id);
	return rc == RC_OK ? pass_turn(db, op->key_id, now) : rc;
}

static enum rc
dead(const struct op_effect *op, struct db *db, int64_t now)
{
	struct db_stmt *s = end_stmt(op, db, QUERY_EFFECT_DEAD);
	enum rc rc;

	db_bind_text(s, 5, op->end->last_error);
	rc = store_ops_change_one(s, RC_LOST);
	return rc == RC_OK ? pass_turn(db, op->key_id, now) : rc;
}

/* The effect keeps its turn, unless an earlier effect is pending again. */
static enum rc
again(const struct op_effect *op, struct db *db, int64_t now)
{
	struct db_stmt *s = end_stmt(op, db, QUERY_EFFECT_AGAIN);
	enum rc rc;

	db_bind_text(s, 5, op->end->last_error);
	db_bind_int(s, 6, now + op->end->after);
	rc = store_ops_change_one(s, RC_LOST);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_EFFECT_EARLIER);
	db_bind_int(s, 1, op->key_id);
	db_bind_int(s, 2, op->id);
	rc = db_step_row(s);
	db_reset(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = step_with(db, QUERY_EFFECT_YIELD, op->id);
	return rc == RC_OK ? pass_turn(db, op->key_id, now) : rc;
}

static enum rc
end(const struct op_effect *op, struct db *db, int64_t now)
{
	switch (op->end->state) {
	case STORE_EFFECT_PENDING:
		return again(op, db, now);
	case STORE_EFFECT_DELIVERED:
		return delivered(op, db, now);
	case STORE_EFFECT_DEAD_LETTER:
		return dead(op, db, now);
	case STORE_EFFECT_NONE:
		break;
	}
	assert(!"no end of a try");
	return RC_INVALID;
}

/* Steps a statement that changes one row and returns it; RC_LOST: none. */
static enum rc
changed_row(struct db_stmt *s)
{
	enum rc rc = db_step_row(s);

	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

/* This effect is due now, or the effect of its key that comes before it. */
static enum rc
retry(const struct op_effect *op, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_RETRY);
	int64_t key_id;
	enum rc rc;

	db_bind_int(s, 1, op->id);
	db_bind_int(s, 2, clock_wall());
	if ((rc = changed_row(s)) != RC_OK)
		return rc;
	key_id = db_column_int(s, 0);
	db_reset(s);

	s = db_stmt(db, QUERY_EFFECT_BUSY);
	db_bind_int(s, 1, key_id);
	rc = db_step_row(s);
	db_reset(s);
	if (rc != RC_NOTFOUND)
		return rc; /* the end of that try passes the turn on */
	rc = step_with(db, QUERY_EFFECT_HALT, key_id);
	return rc == RC_OK ? pass_turn(db, key_id, now) : rc;
}

static enum rc
drop(const struct op_effect *op, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_DROP);
	int64_t key_id;
	bool had_turn;
	enum rc rc;

	db_bind_int(s, 1, op->id);
	if ((rc = changed_row(s)) != RC_OK)
		return rc;
	key_id = db_column_int(s, 0);
	had_turn = !db_column_null(s, 1);
	db_reset(s);
	rc = step_with(db, QUERY_DELETE_PAYLOAD, op->id);
	return rc == RC_OK && had_turn ? pass_turn(db, key_id, now) : rc;
}

enum rc
store_ops_effect(const struct op_effect *op, struct db *db, int64_t now)
{
	switch (op->verb) {
	case OP_EFFECT_BEGIN:
		return begin(op, db, now);
	case OP_EFFECT_END:
		return end(op, db, now);
	case OP_EFFECT_RETRY:
		return retry(op, db, now);
	case OP_EFFECT_DROP:
		return drop(op, db, now);
	}
	assert(!"no such verb");
	return RC_INVALID;
}

enum rc
store_ops_free_effects(struct db *db, int64_t owner, int64_t now, int *n)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_FREE);
	enum rc rc;
	int freed;

	db_bind_int(s, 1, owner);
	db_bind_int(s, 2, now);
	db_bind_int(s, 3, clock_wall());
	db_bind_text(s, 4, "oncewrap was lost while it was tried");
	rc = db_update(s, &freed);
	if (rc == RC_OK && freed > 0) {
		*n += freed;
		FAULT(SWEEP_EFFECTS);
	}
	return rc;
}
