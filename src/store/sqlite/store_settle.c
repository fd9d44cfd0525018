/*
 * What becomes of a leased key, and where its answer is kept.  Every change
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
 * A large transaction that fails for want of space leaves the log as long as
 * it grew, and then small ones fail too.  It will be in the log and in the
 * database, and what is in the log already will be in the database as well.
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

enum rc
store_ops_write(struct db *db, const char *table, const char *column,
    int64_t id, const void *bytes, size_t n)
{
	struct db_blob *blob = NULL;
	enum rc rc;

	rc = db_blob_open(db, table, column, id, true, &blob);
	if (rc == RC_OK)
		rc = db_blob_write(blob, bytes, n, 0);
	db_blob_close(blob);
	return rc;
}

static enum rc
store_body(struct db *db, int64_t id, const void *body, size_t n)
{
	struct db_stmt *s = db_stmt(db, QUERY_BODY_NEW);
	enum rc rc;

	if ((rc = store_ops_room(db, n)) != RC_OK)
		return rc;
	db_bind_int(s, 1, id);
	db_bind_int(s, 2, (int64_t)n);
	rc = db_step_done(s);
	FAULT(BODY_MADE);
	if (rc == RC_OK)
		rc = store_ops_write(db, "once_body", "body", id, body, n);
	return rc;
}

/* The tries of a key without a lease, as parameters 2 and i. */
static void
bind_tries(struct db_stmt *s, int i, const struct store_settlement *w)
{
	db_bind_int(s, 2, w->tries.tries);
	db_bind_int(s, i, w->tries.attempt);
}

/* The state that a settlement changes: a lease is of a key in progress; without
 * one its outcome is open, or a worker never came. */
static enum record_state
from_state(const struct store_settlement *w)
{
	if (w->token[0] != '\0')
		return RECORD_IN_PROGRESS;
	return w->abandon ? RECORD_PENDING : RECORD_UNKNOWN;
}

/* expiry: when it expires, or, of a key without a lease, now. */
static enum rc
settle_completed(
    const struct store_settlement *w, struct db *db, int64_t expiry)
{
	const struct response *r = &w->response;
	bool leased = w->token[0] != '\0';
	struct db_stmt *s = db_stmt(db,
	    leased           ? QUERY_SETTLE_COMPLETED
		: w->abandon ? QUERY_SETTLE_ABANDONED
			     : QUERY_RESOLVE_COMPLETED);
	bool keep = w->keep && r->body_len <= STORE_MAX_BODY;
	bool apart = keep && r->body_len > STORE_INLINE;
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
	rc = store_ops_change_state(s, from_state(w), w->state, RC_LOST);
	if (rc == RC_OK && apart)
		rc = store_body(db, w->id, r->body, r->body_len);
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
	return store_ops_change_state(s, from_state(w), w->state, RC_LOST);
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
	return store_ops_delete_request(db, id);
}

/* As it was judged. */
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
	/* Without a lease the retention is added where it is kept. */
	if (w->token[0] != '\0')
		op->expires_at = expiry = now + w->retention;
	if (w->state == RECORD_FAILED_RETRYABLE) {
		/* The pause before the next attempt is not part of it. */
		if (w->requeue > 0)
			expiry += w->requeue;
		rc = settle_released(w, db, expiry, now);
		return rc == RC_OK ? store_ops_released(db, w->id) : rc;
	}
	rc = settle_completed(w, db, expiry);
	return rc == RC_OK ? store_ops_delete_request(db, w->id) : rc;
}

enum rc
store_ops_settle(struct op_settle *op, struct db *db, int64_t now)
{
	struct store_settlement *w = &op->settlement;
	enum rc rc;

	w->answered = false;
	rc = settle(op, db, now);
	if (rc != RC_LOST || w->token[0] == '\0')
		return rc;
	rc = store_ops_seal(db, w->id, w->token, now, &op->expires_at);
	w->answered = rc == RC_OK;
	return rc;
}
