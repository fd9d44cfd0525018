/*
 * The writes of the store: operations in general, and what they share.  Nothing
 * here begins or ends a transaction, waits, or knows of threads.
 */
#include "config.h"

#include <sys/random.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "uuid.h"
#include "store_row.h"
#include "store_ops.h"

void
store_op_init(struct op *op, enum op_kind kind)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	sem_init(&op->wake, 0, 0);
}

void
store_op_release(struct op *op)
{
	switch (op->kind) {
	case OP_RESERVE:
		record_free(&op->reserve.found);
		break;
	case OP_ACCEPT:
		record_free(&op->accept.found);
		break;
	case OP_SETTLE:
		response_free(&op->settle.settlement.response);
		spool_free(op->settle.settlement.body);
		break;
	case OP_SWEEP:
		store_changes_free(op->sweep.changes, op->sweep.n);
		break;
	case OP_REAP:
		store_changes_free(op->reap.changes, op->reap.n);
		break;
	case OP_START:
	case OP_CLAIM:
	case OP_FORGET:
	case OP_TOPICS:
	case OP_EFFECT:
	case OP_CLOCK:
		break;
	}
	sem_destroy(&op->wake);
}

bool
store_op_is_large(const struct op *op)
{
	if (op->kind == OP_RESERVE)
		return op->reserve.what->body_len >= STORE_LARGE;
	if (op->kind == OP_ACCEPT)
		return op->accept.what->body_len >= STORE_LARGE;
	return op->kind == OP_SETTLE &&
	    op->settle.settlement.token[0] == '\0' &&
	    op->settle.settlement.keep &&
	    op->settle.settlement.response.body_len >= STORE_LARGE;
}

bool
store_op_is_piece(const struct op *op)
{
	return op->kind == OP_SETTLE && !store_op_is_large(op) &&
	    op->settle.settlement.keep &&
	    op->settle.settlement.response.body_len >= STORE_LARGE;
}

bool
store_op_goes_on(struct op *op)
{
	if (op->kind != OP_SETTLE || op->rc != RC_OK || !op->settle.more)
		return false;
	op->settle.stored = op->settle.written;
	op->settle.more = false;
	op->pause = 0;
	FAULT(PIECE_STORED);
	return true;
}

bool
store_op_is_new(const struct op *op)
{
	return op->kind == OP_RESERVE || op->kind == OP_ACCEPT ||
	    op->kind == OP_START ||
	    (op->kind == OP_EFFECT && op->effect.verb == OP_EFFECT_BEGIN);
}

bool
store_op_may_be_refused(const struct op *op)
{
	return op->kind == OP_RESERVE || op->kind == OP_ACCEPT ||
	    (op->kind == OP_CLOCK && op->clock.touch);
}

bool
store_op_holds_request(const struct op *op)
{
	return store_op_may_be_refused(op) ||
	    (op->kind == OP_SETTLE && !op->left);
}

bool
store_op_drop_answer(struct op *op)
{
	struct store_settlement *s = &op->settle.settlement;

	if (!s->keep || s->response.body_len <= STORE_INLINE)
		return false;
	log_event(LOG_ERROR, "answer-not-kept", NULL, LOG_I("id", s->id),
	    LOG_I("bytes", s->response.body_len),
	    LOG_S("why", rc_text(RC_FULL)));
	s->keep = false;
	return true;
}

bool
store_op_hardens(const struct op *op)
{
	return (op->kind == OP_CLOCK && op->clock.harden) ||
	    (op->kind == OP_SETTLE && op->settle.settlement.answered) ||
	    (op->kind == OP_SWEEP && op->sweep.sealed) ||
	    (op->kind == OP_EFFECT && op->effect.verb == OP_EFFECT_BEGIN);
}

bool
store_op_has_settled(const struct op *op)
{
	return (op->kind == OP_SETTLE && op->rc == RC_OK) ||
	    (op->kind == OP_SWEEP && op->sweep.n > 0);
}

bool
store_op_makes_work(const struct op *op)
{
	return (op->kind == OP_SETTLE && op->settle.settlement.requeue >= 0) ||
	    op->kind == OP_TOPICS ||
	    (op->kind == OP_SWEEP &&
		(op->sweep.n > 0 || op->sweep.effects > 0)) ||
	    (op->kind == OP_EFFECT && op->effect.verb != OP_EFFECT_BEGIN) ||
	    (op->kind == OP_ACCEPT && op->accept.decision == DECIDE_RUN &&
		!op->accept.ticket->full);
}

static bool
random_bytes(unsigned char *p, size_t n)
{
	ssize_t r;

	do
		r = getrandom(p, n, 0);
	while (r == -1 && errno == EINTR);
	return r == (ssize_t)n;
}

bool
store_ops_token(char out[RECORD_TOKEN_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char b[RECORD_TOKEN_LEN / 2];
	size_t i;

	if (!random_bytes(b, sizeof(b)))
		return false;
	for (i = 0; i < sizeof(b); i++) {
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 0x0f];
	}
	*out = '\0';
	return true;
}

bool
store_ops_copy(struct db_stmt *s, int i, char *out, size_t size)
{
	const char *text = db_column_text(s, i);
	size_t n = text != NULL ? strlen(text) : 0;

	if (n >= size)
		return false;
	memcpy(out, text != NULL ? text : "", n + 1);
	return true;
}

enum rc
store_ops_read_record(
    struct db_stmt *s, struct record *r, struct store_lease *lease)
{
	const void *fingerprint;
	const char *state;
	enum rc rc;
	size_t n;

	memset(r, 0, sizeof(*r));
	r->id = db_column_int(s, 0);
	state = db_column_text(s, 1);
	r->attempt = (int)db_column_int(s, 2);
	fingerprint = db_column_blob(s, 4, &n);
	r->expires_at = db_column_int(s, 7);
	r->updated_at = db_column_int(s, 8);
	r->status = (int)db_column_int(s, 9);
	r->kept = db_column_int(s, 10) != 0;
	r->gone = db_column_int(s, 12) != 0;
	r->expired_retention = db_column_int(s, 13);
	r->accepted = db_column_int(s, 14) != 0;
	r->queued = db_column_int(s, 16) != 0;
	r->owner = db_column_int(s, 17);
	if (state == NULL || !record_state_parse(state, &r->state) ||
	    n != FINGERPRINT_LEN || !store_row_is_count(s, 2) ||
	    !store_row_is_time(s, 7) || !store_row_is_time(s, 13) ||
	    !store_row_is_count(s, 9) || db_column_text(s, 5) == NULL ||
	    !store_ops_copy(s, 3, r->token, sizeof(r->token)) ||
	    !store_ops_copy(s, 6, r->downstream, sizeof(r->downstream)) ||
	    !store_ops_copy(s, 15, r->resource, sizeof(r->resource)))
		return RC_CORRUPT;
	r->unsealed = r->state == RECORD_COMPLETED && r->token[0] != '\0';
	if (lease != NULL &&
	    !store_ops_copy(
		s, 11, lease->recovery_point, sizeof(lease->recovery_point)))
		return RC_CORRUPT;
	memcpy(r->fingerprint, fingerprint, n);
	if ((rc = db_column_strdup(s, 5, &r->recipe)) != RC_OK)
		return rc;
	if (record_is_sound(r))
		return RC_OK;
	record_free(r);
	return RC_CORRUPT;
}

enum rc
store_ops_find(struct db *db, const struct store_identity *who,
    struct record *r, struct store_lease *lease, struct store_small *small)
{
	struct db_stmt *s = db_stmt(db, QUERY_FIND);
	enum rc rc;

	db_bind_text(s, 1, who->key);
	db_bind_text(s, 2, who->path);
	db_bind_text(s, 3, who->scope);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	rc = store_ops_read_record(s, r, lease);
	if (rc == RC_CORRUPT)
		store_row_bad(db, "once_key", r->id);
	if (rc == RC_OK && small != NULL && r->kept)
		store_read_small(s, r->status, small);
	db_reset(s);
	return rc;
}

enum rc
store_ops_change_state(struct db_stmt *s, enum record_state from,
    enum record_state to, enum rc lost)
{
	if (!record_may_change(from, to, false))
		return RC_INVALID;
	return store_ops_change_one(s, lost);
}

enum rc
store_ops_change_one(struct db_stmt *s, enum rc lost)
{
	enum rc rc;
	int changed;

	rc = db_update(s, &changed);
	if (rc != RC_OK)
		return rc;
	if (changed > 1) /* the table is not ours */
		return RC_CORRUPT;
	return changed == 1 ? RC_OK : lost;
}

enum rc
store_ops_delete_pieces(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_PIECES);

	db_bind_int(s, 1, id);
	return db_step_done(s);
}

static enum rc
delete_body(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_BODY);
	enum rc rc;

	db_bind_int(s, 1, id);
	rc = db_step_done(s);
	return rc == RC_OK ? store_ops_delete_pieces(db, id) : rc;
}

enum rc
store_ops_kept(struct db *db, int64_t *bytes)
{
	struct db_stmt *s = db_stmt(db, QUERY_KEPT_BYTES);
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	*bytes = db_column_int(s, 0);
	db_reset(s);
	return RC_OK;
}

enum rc
store_ops_add_kept(struct db *db, int64_t bytes)
{
	struct db_stmt *s = db_stmt(db, QUERY_KEPT_ADD);

	db_bind_int(s, 1, bytes);
	return db_step_done(s);
}

/* Bytes of the request that the query finds; RC_NOTFOUND: none. */
static enum rc
request_bytes(struct db *db, int64_t id, enum query find, int64_t *bytes)
{
	struct db_stmt *s = db_stmt(db, find);
	enum rc rc;

	db_bind_int(s, 1, id);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	*bytes = db_column_int(s, 0);
	db_reset(s);
	return RC_OK;
}

enum rc
store_ops_kept_with(struct db *db, int64_t id, int64_t *bytes)
{
	enum rc rc = request_bytes(db, id, QUERY_REQUEST_BYTES, bytes);

	if (rc == RC_NOTFOUND)
		*bytes = 0;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Deletes the request that the query finds, if any, and subtracts its bytes. */
static enum rc
delete_request(struct db *db, int64_t id, enum query find)
{
	struct db_stmt *s;
	int64_t bytes;
	enum rc rc;

	rc = request_bytes(db, id, find, &bytes);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	s = db_stmt(db, QUERY_DELETE_REQUEST);
	db_bind_int(s, 1, id);
	rc = db_step_done(s);
	return rc == RC_OK ? store_ops_add_kept(db, -bytes) : rc;
}

enum rc
store_ops_delete_request(struct db *db, int64_t id)
{
	return delete_request(db, id, QUERY_REQUEST_BYTES);
}

enum rc
store_ops_released(struct db *db, int64_t id)
{
	return delete_request(db, id, QUERY_REQUEST_BYTES_UNLESS_ACCEPTED);
}

enum rc
store_ops_delete_kept(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_DELIVERED);
	enum rc rc;

	db_bind_int(s, 1, id);
	rc = db_step_done(s);
	if (rc == RC_OK)
		rc = delete_body(db, id);
	return rc == RC_OK ? store_ops_delete_request(db, id) : rc;
}

enum rc
store_ops_delete_past(
    struct db *db, int64_t id, enum record_state from, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_PAST);
	enum rc rc;

	db_bind_int(s, 1, id);
	db_bind_int(s, 2, now);
	rc = store_ops_change_state(s, from, RECORD_NONE, RC_CORRUPT);
	return rc == RC_OK ? store_ops_delete_kept(db, id) : rc;
}

enum rc
store_op_run(struct op *op, struct db *db, int64_t now)
{
	switch (op->kind) {
	case OP_RESERVE:
		return store_ops_reserve(&op->reserve, db, now);
	case OP_ACCEPT:
		return store_ops_accept(&op->accept, db, now);
	case OP_START:
		return store_ops_start(&op->start, db, now);
	case OP_SETTLE:
		return store_ops_settle(&op->settle, db, now);
	case OP_SWEEP:
		return store_ops_sweep(&op->sweep, db, now);
	case OP_REAP:
		return store_ops_reap(&op->reap, db, now);
	case OP_CLAIM:
		return store_ops_claim(&op->claim, db, now);
	case OP_FORGET:
		return store_ops_forget(&op->forget, db);
	case OP_TOPICS:
		return store_ops_topics(&op->topics, db);
	case OP_EFFECT:
		return store_ops_effect(&op->effect, db, now);
	case OP_CLOCK:
		return store_ops_clock(&op->clock, db, now);
	}
	assert(!"no such operation");
	return RC_INVALID;
}
