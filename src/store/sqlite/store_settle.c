/*
 * The outcome of a leased key, and where its response is stored.  Every change
 * here names the attempt's token: an attempt that lost its lease changes
 * nothing.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "store_ops.h"

/*
 * A large transaction that fails for lack of space leaves the log as long as it
 * grew, and then small ones fail too.  The body needs room in the log and again
 * in the database, and so does what is in the log already, in the database.
 */
enum rc
store_ops_room(struct db *db, size_t body)
{
	const uint64_t more = 2 * ((uint64_t)body + body / 8) + STORE_ROOM;

	if (body < STORE_LARGE || db_log_fits(db, more))
		return RC_OK;
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", db_file(db)),
	    LOG_S("message", "no room for a large body"), LOG_I("bytes", body),
	    LOG_I("free", db_room(db)));
	return RC_FULL;
}

/* --- large answers ------------------------------------------------------ */

static bool
is_apart(const struct store_settlement *w)
{
	return w->state == RECORD_COMPLETED && w->keep &&
	    w->response.body_len > STORE_INLINE &&
	    w->response.body_len <= STORE_MAX_BODY;
}

/* Writes the next piece; RC_FULL if the disk has no room for the rest. */
static enum rc
write_piece(struct op_settle *op, struct db *db)
{
	const struct store_settlement *w = &op->settlement;
	const struct response *r = &w->response;
	size_t n = r->body_len - op->written;
	struct db_stmt *s;
	enum rc rc;

	if ((rc = store_ops_room(db, n)) != RC_OK)
		return rc;
	if (n > STORE_PIECE)
		n = STORE_PIECE;
	s = db_stmt(db, QUERY_PIECE_NEW);
	db_bind_int(s, 1, w->id);
	db_bind_int(s, 2, 1 + (int64_t)(op->written / STORE_PIECE));
	db_bind_blob(s, 3, (const char *)r->body + op->written, n);
	rc = db_step_done(s);
	op->written += n;
	FAULT(PIECE_WRITTEN);
	return rc;
}

/* Writes the rest, and checks that all pieces are there. */
static enum rc
finish_pieces(struct op_settle *op, struct db *db)
{
	const struct store_settlement *w = &op->settlement;
	const size_t all = w->response.body_len;
	struct db_stmt *s;
	enum rc rc = RC_OK;

	if (op->written == 0)
		rc = store_ops_delete_pieces(db, w->id);
	while (op->written < all && rc == RC_OK)
		rc = write_piece(op, db);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_PIECE_SUM);
	db_bind_int(s, 1, w->id);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	if (db_column_int(s, 0) !=
		(int64_t)((all + STORE_PIECE - 1) / STORE_PIECE) ||
	    db_column_int(s, 1) != (int64_t)all) {
		/* Begin again. */
		op->stored = 0;
		rc = RC_CORRUPT;
	}
	db_reset(s);
	return rc;
}

/*
 * Writes one piece of a large response.  If the transaction that completes the
 * key wrote all of it, every other operation would wait for it.  So each piece
 * is written in a transaction together with other operations.  The transaction
 * that completes the key writes the last piece, and its sync makes the earlier
 * commits durable too.  RC_LOST: the attempt no longer has a lease.
 */
static enum rc
stage(struct op_settle *op, struct db *db)
{
	const struct store_settlement *w = &op->settlement;
	struct db_stmt *s = db_stmt(db, QUERY_LEASED);
	enum rc rc;

	db_bind_int(s, 1, w->id);
	db_bind_text(s, 2, w->token);
	rc = db_step_row(s);
	db_reset(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	if (op->written == 0)
		rc = store_ops_delete_pieces(db, w->id);
	if (rc == RC_OK)
		rc = write_piece(op, db);
	op->more = rc == RC_OK;
	return rc;
}

/* --- settlements -------------------------------------------------------- */

/* Binds the tries of a key without a lease as parameters 2 and i. */
static void
bind_tries(struct db_stmt *s, int i, const struct store_settlement *w)
{
	db_bind_int(s, 2, w->tries.tries);
	db_bind_int(s, i, w->tries.attempt);
}

/* The state that a settlement changes.  A leased key is in progress.  Without a
 * lease the outcome is open, or no worker ran the key. */
static enum record_state
from_state(const struct store_settlement *w)
{
	if (w->token[0] != '\0')
		return RECORD_IN_PROGRESS;
	return w->abandon ? RECORD_PENDING : RECORD_UNKNOWN;
}

/* An operator may settle a key that was given up. */
static enum rc
change(struct db_stmt *s, const struct store_settlement *w)
{
	if (w->token[0] == '\0' && !w->abandon && w->tries.tries < 0 &&
	    !record_may_change(RECORD_DEAD_LETTER, w->state, false))
		return RC_INVALID;
	return store_ops_change_state(s, from_state(w), w->state, RC_LOST);
}

/* expiry: when the key expires; for a key without a lease, now. */
static enum rc
settle_completed(struct op_settle *op, struct db *db, int64_t expiry)
{
	const struct store_settlement *w = &op->settlement;
	const struct response *r = &w->response;
	bool leased = w->token[0] != '\0';
	struct db_stmt *s = db_stmt(db,
	    leased           ? QUERY_SETTLE_COMPLETED
		: w->abandon ? QUERY_SETTLE_ABANDONED
			     : QUERY_RESOLVE_COMPLETED);
	bool keep = w->keep && r->body_len <= STORE_MAX_BODY;
	bool apart = is_apart(w);
	enum rc rc;

	db_bind_int(s, 1, w->id);
	if (leased)
		db_bind_text(s, 2, w->token);
	else if (!w->abandon)
		bind_tries(s, 14, w);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, expiry);
	db_bind_int(s, 5, keep);
	db_bind_int(s, 6, r->status);
	if (w->last_error[0] != '\0')
		db_bind_text(s, 10, w->last_error);
	if (keep) {
		db_bind_int(s, 7, r->kind);
		db_bind_int(s, 8, STORE_RESPONSE_VERSION);
		db_bind_int(s, 9, (int64_t)r->body_len);
		if (r->reason[0] != '\0')
			db_bind_text(s, 11, r->reason);
		if (r->fields.len > 0)
			db_bind_blob(s, 12, r->fields.data, r->fields.len);
		if (r->body_len > 0 && !apart)
			db_bind_blob(s, 13, r->body, r->body_len);
	}
	rc = change(s, w);
	if (rc == RC_OK && apart)
		rc = finish_pieces(op, db);
	else if (rc == RC_OK && op->stored > 0)
		rc = store_ops_delete_pieces(db, w->id);
	return rc;
}

enum rc
store_ops_unknown(struct db *db, int64_t id, const char *token,
    const char *last_error, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_SETTLE_UNKNOWN);

	db_bind_int(s, 1, id);
	db_bind_text(s, 2, token);
	db_bind_int(s, 3, clock_wall());
	if (last_error[0] != '\0')
		db_bind_text(s, 4, last_error);
	db_bind_int(s, 5, now);
	return store_ops_change_state(
	    s, RECORD_IN_PROGRESS, RECORD_UNKNOWN, RC_LOST);
}

static enum rc
settle_released(const struct store_settlement *w, struct db *db, int64_t expiry,
    int64_t now)
{
	bool leased = w->token[0] != '\0';
	struct db_stmt *s = db_stmt(
	    db, leased ? QUERY_SETTLE_RELEASED : QUERY_RESOLVE_RELEASED);

	db_bind_int(s, 1, w->id);
	if (leased)
		db_bind_text(s, 2, w->token);
	else
		bind_tries(s, 6, w);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, expiry);
	if (w->last_error[0] != '\0')
		db_bind_text(s, 5, w->last_error);
	if (w->requeue >= 0)
		db_bind_int(s, leased ? 6 : 7, now + w->requeue);
	return change(s, w);
}

static enum rc
settle_dead(const struct store_settlement *w, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_RESOLVE_DEAD);

	db_bind_int(s, 1, w->id);
	bind_tries(s, 5, w);
	db_bind_int(s, 3, clock_wall());
	db_bind_text(s, 4, w->last_error);
	return store_ops_change_state(s, from_state(w), w->state, RC_LOST);
}

enum rc
store_ops_seal(struct db *db, int64_t id, const char *token, int64_t now,
    int64_t *expires_at)
{
	struct db_stmt *s = db_stmt(db, QUERY_SEAL);
	enum rc rc;

	db_bind_int(s, 1, id);
	db_bind_text(s, 2, token);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, now);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	*expires_at = db_column_int(s, 0);
	db_reset(s);
	rc = store_ops_delete_pieces(db, id);
	return rc == RC_OK ? store_ops_delete_request(db, id) : rc;
}

/* Writes the outcome of the settlement. */
static enum rc
settle(struct op_settle *op, struct db *db, int64_t now)
{
	const struct store_settlement *w = &op->settlement;
	int64_t expiry = now;
	enum rc rc;

	op->expires_at = 0;
	if (w->state == RECORD_UNKNOWN)
		return store_ops_unknown(
		    db, w->id, w->token, w->last_error, now);
	if (w->state == RECORD_DEAD_LETTER)
		return settle_dead(w, db);
	/* Without a lease the SQL adds the retention, which is in the row. */
	if (w->token[0] != '\0')
		op->expires_at = expiry = now + w->retention;
	if (w->state == RECORD_FAILED_RETRYABLE) {
		/* The pause before the next attempt is not part of the
		 * retention. */
		if (w->requeue > 0)
			expiry += w->requeue;
		rc = settle_released(w, db, expiry, now);
		return rc == RC_OK ? store_ops_released(db, w->id) : rc;
	}
	rc = settle_completed(op, db, expiry);
	return rc == RC_OK ? store_ops_delete_request(db, w->id) : rc;
}

enum rc
store_ops_settle(struct op_settle *op, struct db *db, int64_t now)
{
	struct store_settlement *w = &op->settlement;
	enum rc rc;

	w->answered = false;
	op->more = false;
	op->written = op->stored;
	if (w->token[0] != '\0' && is_apart(w) &&
	    w->response.body_len - op->stored > STORE_PIECE &&
	    (rc = stage(op, db)) != RC_LOST)
		return rc;
	rc = settle(op, db, now);
	if (rc != RC_LOST || w->token[0] == '\0')
		return rc;
	rc = store_ops_seal(db, w->id, w->token, now, &op->expires_at);
	w->answered = rc == RC_OK;
	return rc;
}
