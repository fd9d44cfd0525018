/*
 * What the store writes: operations in general, and the reservation.  Nothing
 * here begins or ends a transaction, waits, or knows of threads.
 */
#include "config.h"

#include <sys/random.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "uuid.h"
#include "store_ops.h"

void
store_op_init(struct op *op, enum op_kind kind)
{
	pthread_condattr_t attr;

	memset(op, 0, sizeof(*op));
	op->kind = kind;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&op->done, &attr);
	pthread_condattr_destroy(&attr);
}

void
store_op_release(struct op *op)
{
	switch (op->kind) {
	case OP_RESERVE:
		record_free(&op->reserve.found);
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
	case OP_CLAIM:
	case OP_FORGET:
	case OP_CLOCK:
		break;
	}
	pthread_cond_destroy(&op->done);
}

bool
store_op_is_large(const struct op *op)
{
	if (op->kind == OP_RESERVE)
		return op->reserve.what->body_len >= STORE_LARGE;
	return op->kind == OP_SETTLE && op->settle.settlement.keep &&
	    op->settle.settlement.response.body_len >= STORE_LARGE;
}

bool
store_op_has_settled(const struct op *op)
{
	return (op->kind == OP_SETTLE && op->rc == RC_OK) ||
	    (op->kind == OP_SWEEP && op->sweep.n > 0);
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
	unsigned char b[RECORD_TOKEN_LEN / 2];
	size_t i;

	if (!random_bytes(b, sizeof(b)))
		return false;
	for (i = 0; i < sizeof(b); i++)
		snprintf(out + 2 * i, 3, "%02x", b[i]);
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

/*
 * What a file holds is input: a row that record_check() would not have is
 * refused here.
 */
static bool
row_is_sound(const struct record *r)
{
	bool leased = r->state == RECORD_IN_PROGRESS;

	if (r->id <= 0 || r->state == RECORD_NONE ||
	    strlen(r->downstream) != RECORD_UUID_LEN ||
	    strlen(r->token) != (leased ? RECORD_TOKEN_LEN : 0) ||
	    r->attempt < (r->state == RECORD_PENDING ? 0 : 1) ||
	    r->expires_at < 0 || r->expired_retention < 0)
		return false;
	if (r->state == RECORD_COMPLETED)
		return r->status >= 200 && r->status <= 599;
	if (leased || r->state == RECORD_UNKNOWN ||
	    r->state == RECORD_DEAD_LETTER)
		return r->expires_at == 0 && !r->kept;
	return !r->kept;
}

static enum rc
read_record(struct db_stmt *s, struct record *r, struct store_lease *lease)
{
	const void *fingerprint;
	const char *state;
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
	if (state == NULL || !record_state_parse(state, &r->state) ||
	    n != FINGERPRINT_LEN ||
	    !store_ops_copy(s, 3, r->token, sizeof(r->token)) ||
	    !store_ops_copy(s, 6, r->downstream, sizeof(r->downstream)) ||
	    !row_is_sound(r))
		return RC_CORRUPT;
	if (lease != NULL &&
	    !store_ops_copy(
		s, 11, lease->recovery_point, sizeof(lease->recovery_point)))
		return RC_CORRUPT;
	memcpy(r->fingerprint, fingerprint, n);
	return db_column_strdup(s, 5, &r->recipe);
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
	rc = read_record(s, r, lease);
	if (rc == RC_CORRUPT)
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("database", db_file(db)),
		    LOG_S("message", "a key's row makes no sense"),
		    LOG_I("id", r->id));
	if (rc == RC_OK && small != NULL && r->kept)
		store_read_small(s, r->status, small);
	db_reset(s);
	return rc;
}

enum rc
store_ops_change_one(struct db_stmt *s, enum rc lost)
{
	enum rc rc;
	int changed;

	rc = db_update(s, &changed);
	if (rc != RC_OK)
		return rc;
	assert(changed <= 1);
	return changed == 1 ? RC_OK : lost;
}

static enum rc
recipe_id(struct db *db, const char *recipe, int64_t *id)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECIPE_FIND);
	enum rc rc;

	db_bind_text(s, 1, recipe);
	rc = db_step_row(s);
	if (rc == RC_NOTFOUND) {
		s = db_stmt(db, QUERY_RECIPE_NEW);
		db_bind_text(s, 1, recipe);
		rc = db_step_row(s);
		if (rc == RC_NOTFOUND)
			rc = RC_CORRUPT;
	}
	if (rc == RC_OK)
		*id = db_column_int(s, 0);
	db_reset(s);
	return rc;
}

enum rc
store_ops_delete_body(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_BODY);

	db_bind_int(s, 1, id);
	return db_step_done(s);
}

enum rc
store_ops_delete_request(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_REQUEST);

	db_bind_int(s, 1, id);
	return db_step_done(s);
}

enum rc
store_ops_delete_past(struct db *db, int64_t id, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_PAST);
	enum rc rc;

	db_bind_int(s, 1, id);
	db_bind_int(s, 2, now);
	rc = store_ops_change_one(s, RC_CORRUPT);
	if (rc == RC_OK)
		rc = store_ops_delete_body(db, id);
	return rc == RC_OK ? store_ops_delete_request(db, id) : rc;
}

static const char *
on_crash_name(enum conf_on_crash on_crash)
{
	switch (on_crash) {
	case CONF_CRASH_UNKNOWN:
		return "unknown";
	case CONF_CRASH_RESUME:
		return "resume";
	}
	assert(!"no such on_crash");
	return "unknown";
}

static const char *
on_expired_name(enum conf_on_expired on_expired)
{
	switch (on_expired) {
	case CONF_EXPIRED_RUN:
		return "run";
	case CONF_EXPIRED_GONE:
		return "gone";
	}
	assert(!"no such on_expired");
	return "run";
}

/* What both kinds of reservation say of the time after the attempt: columns
 * from on_expired to reconcile_delay, bound from parameter i on. */
static void
bind_after(struct db_stmt *s, int i, const struct store_reservation *w)
{
	db_bind_text(s, i, on_expired_name(w->on_expired));
	db_bind_int(s, i + 1, w->expired_retention);
	if (w->attempt != NULL) {
		db_bind_int(s, i + 2, w->attempt->lock);
		db_bind_int(s, i + 3, w->attempt->file);
	}
	if (w->reconcile_delay != 0)
		db_bind_int(s, i + 4, w->reconcile_delay);
}

/* The request, where somebody may have to find out what became of it. */
static enum rc
keep_request(struct db *db, int64_t id, const struct store_reservation *w)
{
	struct db_stmt *s;
	enum rc rc;

	if (w->reconcile_delay == 0)
		return store_ops_delete_request(db, id);
	s = db_stmt(db, QUERY_REQUEST_NEW);
	db_bind_int(s, 1, id);
	db_bind_blob(s, 2, w->environment, w->environment_len);
	db_bind_int(s, 3, (int64_t)w->body_len);
	rc = db_step_done(s);
	if (rc != RC_OK || w->body_len == 0)
		return rc;
	return store_ops_write(
	    db, "once_request", "body", id, w->body, w->body_len);
}

/* old is a record that is past its retention, or NULL. */
static enum rc
reserve_new(
    struct op_reserve *op, struct db *db, const struct record *old, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct store_lease *lease = op->lease;
	struct db_stmt *s;
	int64_t recipe;
	enum rc rc;

	s = db_stmt(db, QUERY_NEW_ID);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	lease->id = db_column_int(s, 0);
	db_reset(s);
	if (old != NULL &&
	    (rc = store_ops_delete_past(db, old->id, now)) != RC_OK)
		return rc;
	if ((rc = recipe_id(db, w->recipe, &recipe)) != RC_OK)
		return rc;

	lease->attempt = 1;
	snprintf(
	    lease->recovery_point, sizeof(lease->recovery_point), "started");
	s = db_stmt(db, QUERY_RESERVE_NEW);
	db_bind_int(s, 1, lease->id);
	db_bind_text(s, 2, w->identity.key);
	db_bind_text(s, 3, w->identity.path);
	db_bind_text(s, 4, w->identity.scope);
	db_bind_text(s, 5, lease->token);
	db_bind_int(s, 6, op->owner);
	db_bind_int(s, 7, now + w->lease);
	db_bind_blob(s, 8, w->fingerprint, FINGERPRINT_LEN);
	db_bind_int(s, 9, recipe);
	db_bind_text(s, 10, lease->downstream);
	db_bind_text(s, 11, on_crash_name(w->on_crash));
	db_bind_int(s, 12, w->retention);
	db_bind_int(s, 13, clock_wall());
	bind_after(s, 14, w);
	rc = db_step_done(s);
	if (rc != RC_OK || w->reconcile_delay == 0)
		return rc;
	return keep_request(db, lease->id, w);
}

static enum rc
reserve_again(
    struct op_reserve *op, struct db *db, const struct record *old, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct store_lease *lease = op->lease;
	struct db_stmt *s = db_stmt(db, QUERY_RESERVE_AGAIN);
	enum rc rc;

	lease->id = old->id;
	lease->attempt = old->attempt + 1;
	memcpy(lease->downstream, old->downstream, sizeof(lease->downstream));
	db_bind_int(s, 1, old->id);
	db_bind_int(s, 2, old->attempt);
	db_bind_text(s, 3, lease->token);
	db_bind_int(s, 4, op->owner);
	db_bind_int(s, 5, now + w->lease);
	db_bind_text(s, 6, on_crash_name(w->on_crash));
	db_bind_int(s, 7, w->retention);
	db_bind_int(s, 8, clock_wall());
	bind_after(s, 9, w);
	rc = store_ops_change_one(s, RC_CORRUPT);
	return rc == RC_OK ? keep_request(db, old->id, w) : rc;
}

static enum rc
run_reserve(struct op_reserve *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct record *found = &op->found;
	bool past, same;
	enum rc rc;

	record_free(found);
	memset(found, 0, sizeof(*found));
	/* A downstream key of an earlier run of this must not stay. */
	if (!store_ops_token(op->lease->token))
		return RC_IO;
	uuid_random(op->lease->downstream);
	rc = store_ops_find(db, &w->identity, found, op->lease, NULL);
	if (rc == RC_NOTFOUND) {
		op->decision = decide(NULL, true, now);
		assert(op->decision == DECIDE_RUN);
		return reserve_new(op, db, NULL, now);
	}
	if (rc != RC_OK)
		return rc;
	record_check(found);
	past = decide_is_past(found, now);
	if (!past && strcmp(found->recipe, w->recipe) != 0) {
		op->decision = DECIDE_BUSY;
		return RC_OK;
	}
	same = memcmp(found->fingerprint, w->fingerprint, FINGERPRINT_LEN) == 0;
	op->decision = decide(found, same, now);
	if (op->decision != DECIDE_RUN)
		return RC_OK;
	rc = past ? reserve_new(op, db, found, now)
		  : reserve_again(op, db, found, now);
	record_free(found);
	memset(found, 0, sizeof(*found));
	return rc;
}

enum rc
store_op_run(struct op *op, struct db *db, int64_t now)
{
	switch (op->kind) {
	case OP_RESERVE:
		return run_reserve(&op->reserve, db, now);
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
	case OP_CLOCK:
		return store_ops_clock(&op->clock, db, now);
	}
	assert(!"no such operation");
	return RC_INVALID;
}
