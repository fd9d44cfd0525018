/*
 * What the store writes.  Nothing here begins or ends a transaction, waits, or
 * knows of threads.
 */
#include "config.h"

#include <sys/random.h>
#include <sys/statvfs.h>

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "store_ops.h"

void
op_init(struct op *op, enum op_kind kind)
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
op_release(struct op *op)
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
	case OP_CLOCK:
		break;
	}
	pthread_cond_destroy(&op->done);
}

bool
op_is_large(const struct op *op)
{
	return op->kind == OP_SETTLE && op->settle.settlement.keep &&
	    op->settle.settlement.response.body_len >= STORE_LARGE;
}

bool
op_has_settled(const struct op *op)
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
ops_token(char out[RECORD_TOKEN_LEN + 1])
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
ops_uuid(char out[RECORD_UUID_LEN + 1])
{
	unsigned char b[16];

	if (!random_bytes(b, sizeof(b)))
		return false;
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(out, RECORD_UUID_LEN + 1,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
	    b[11], b[12], b[13], b[14], b[15]);
	return true;
}

/* A text of a row into a field of fixed size; false if it does not fit. */
static bool
copy_text(struct db_stmt *s, int i, char *out, size_t size)
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
	    r->expires_at < 0)
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
	if (state == NULL || !record_state_parse(state, &r->state) ||
	    n != FINGERPRINT_LEN ||
	    !copy_text(s, 3, r->token, sizeof(r->token)) ||
	    !copy_text(s, 6, r->downstream, sizeof(r->downstream)) ||
	    !row_is_sound(r))
		return RC_CORRUPT;
	if (lease != NULL &&
	    !copy_text(
		s, 11, lease->recovery_point, sizeof(lease->recovery_point)))
		return RC_CORRUPT;
	memcpy(r->fingerprint, fingerprint, n);
	return db_column_strdup(s, 5, &r->recipe);
}

enum rc
ops_find(struct db *db, const struct store_identity *who, struct record *r,
    struct store_lease *lease)
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
	db_reset(s);
	return rc;
}

/* Steps a statement that changes exactly one row; if it changed none, lost. */
static enum rc
change_one(struct db_stmt *s, enum rc lost)
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

static enum rc
delete_body(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_BODY);

	db_bind_int(s, 1, id);
	return db_step_done(s);
}

/* Deletes a key past its retention, and its body. */
static enum rc
delete_past(struct db *db, int64_t id, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_DELETE_PAST);
	enum rc rc;

	db_bind_int(s, 1, id);
	db_bind_int(s, 2, now);
	rc = change_one(s, RC_CORRUPT);
	return rc == RC_OK ? delete_body(db, id) : rc;
}

static const char *
on_crash_name(enum conf_on_crash on_crash)
{
	switch (on_crash) {
	case CONF_CRASH_UNKNOWN:
		return "unknown";
	}
	assert(!"no such on_crash");
	return "unknown";
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
	if (old != NULL && (rc = delete_past(db, old->id, now)) != RC_OK)
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
	return db_step_done(s);
}

static enum rc
reserve_again(
    struct op_reserve *op, struct db *db, const struct record *old, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct store_lease *lease = op->lease;
	struct db_stmt *s = db_stmt(db, QUERY_RESERVE_AGAIN);

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
	return change_one(s, RC_CORRUPT);
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
	if (!ops_token(op->lease->token) || !ops_uuid(op->lease->downstream))
		return RC_IO;
	rc = ops_find(db, &w->identity, found, op->lease);
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

/*
 * A large transaction that fails for want of space leaves the log as long as
 * it grew, and then small ones fail too.  It will be in the log and in the
 * database.
 */
static enum rc
check_room(struct db *db, size_t body)
{
	struct statvfs fs;
	char *name;
	uint64_t room;
	int r;

	name = strdup(db_file(db));
	if (name == NULL)
		return RC_NOMEM;
	r = statvfs(dirname(name), &fs);
	free(name);
	if (r == -1)
		return RC_OK; /* then the write will tell */
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room / 2 > body + body / 8)
		return RC_OK;
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", db_file(db)),
	    LOG_S("message", "no room for a large answer"),
	    LOG_I("bytes", body), LOG_I("free", room));
	return RC_FULL;
}

static enum rc
store_body(struct db *db, int64_t id, const void *body, size_t n)
{
	struct db_blob *blob = NULL;
	struct db_stmt *s;
	enum rc rc;

	if (n >= STORE_LARGE && (rc = check_room(db, n)) != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_BODY_NEW);
	db_bind_int(s, 1, id);
	db_bind_int(s, 2, (int64_t)n);
	rc = db_step_done(s);
	if (rc == RC_OK)
		rc = db_blob_open(db, "once_body", "body", id, true, &blob);
	if (rc == RC_OK)
		rc = db_blob_write(blob, body, n, 0);
	db_blob_close(blob);
	return rc;
}

static enum rc
settle_completed(
    const struct store_settlement *w, struct db *db, int64_t expires_at)
{
	const struct response *r = &w->response;
	struct db_stmt *s = db_stmt(db, QUERY_SETTLE_COMPLETED);
	bool keep = w->keep && r->body_len <= STORE_MAX_BODY;
	bool apart = keep && r->body_len > STORE_INLINE;
	enum rc rc;

	db_bind_int(s, 1, w->id);
	db_bind_text(s, 2, w->token);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, expires_at);
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
	rc = change_one(s, RC_LOST);
	if (rc == RC_OK && apart)
		rc = store_body(db, w->id, r->body, r->body_len);
	return rc;
}

static enum rc
settle_unknown(
    struct db *db, int64_t id, const char *token, const char *last_error)
{
	struct db_stmt *s = db_stmt(db, QUERY_SETTLE_UNKNOWN);

	db_bind_int(s, 1, id);
	db_bind_text(s, 2, token);
	db_bind_int(s, 3, clock_wall());
	if (last_error[0] != '\0')
		db_bind_text(s, 4, last_error);
	return change_one(s, RC_LOST);
}

static enum rc
run_settle(struct op_settle *op, struct db *db, int64_t now)
{
	const struct store_settlement *w = &op->settlement;
	struct db_stmt *s;

	op->expires_at = 0;
	if (w->state == RECORD_UNKNOWN)
		return settle_unknown(db, w->id, w->token, w->last_error);
	op->expires_at = now + w->retention;
	if (w->state == RECORD_COMPLETED)
		return settle_completed(w, db, op->expires_at);
	assert(w->state == RECORD_FAILED_RETRYABLE);
	s = db_stmt(db, QUERY_SETTLE_RELEASED);
	db_bind_int(s, 1, w->id);
	db_bind_text(s, 2, w->token);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, op->expires_at);
	if (w->last_error[0] != '\0')
		db_bind_text(s, 5, w->last_error);
	return change_one(s, RC_LOST);
}

static enum rc
read_change(
    struct db_stmt *s, struct store_change *c, char token[RECORD_TOKEN_LEN + 1])
{
	char *scope = NULL, *path = NULL, *key = NULL;
	enum rc rc;

	c->id = db_column_int(s, 0);
	c->from = RECORD_IN_PROGRESS;
	c->to = RECORD_UNKNOWN;
	if (!copy_text(s, 1, token, RECORD_TOKEN_LEN + 1))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 2, &scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &path)) == RC_OK)
		rc = db_column_strdup(s, 4, &key);
	c->scope = scope;
	c->path = path;
	c->key = key;
	return rc;
}

/* One attempt at a time: the row that is read changes the index that it is
 * found by. */
static enum rc
sweep_one(struct op_sweep *op, struct db *db, int64_t owner)
{
	struct db_stmt *s = db_stmt(db, QUERY_SWEEP_ROW);
	char token[RECORD_TOKEN_LEN + 1];
	struct store_change *c = &op->changes[op->n];
	enum rc rc;

	db_bind_int(s, 1, owner);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	memset(c, 0, sizeof(*c));
	op->n++;
	rc = read_change(s, c, token);
	db_reset(s);
	if (rc == RC_OK)
		rc = settle_unknown(db, c->id, token, "oncewrap was lost");
	return rc == RC_LOST ? RC_CORRUPT : rc;
}

static enum rc
run_sweep(struct op_sweep *op, struct db *db)
{
	enum rc rc = RC_OK;
	size_t i;

	store_changes_free(op->changes, op->n);
	op->n = 0;
	for (i = 0; i < op->ndead && op->n < op->limit; i++) {
		do
			rc = sweep_one(op, db, op->dead[i]);
		while (rc == RC_OK && op->n < op->limit);
		if (rc != RC_OK && rc != RC_NOTFOUND)
			return rc;
	}
	return RC_OK;
}

/* Gives some free pages at the end of the file back to the file system. */
static enum rc
give_back(struct db *db)
{
	int64_t unused, all;
	struct db_stmt *s;
	enum rc rc;

	s = db_stmt(db, QUERY_FREE_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	unused = db_column_int(s, 0);
	db_reset(s);
	s = db_stmt(db, QUERY_ALL_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	all = db_column_int(s, 0);
	db_reset(s);
	if (unused <= STORE_FREE_PAGES || unused <= all / 2)
		return RC_OK;
	s = db_stmt(db, QUERY_VACUUM_STEP);
	do
		rc = db_step_row(s);
	while (rc == RC_OK);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
run_reap(struct op_reap *op, struct db *db, int64_t now)
{
	int64_t ids[STORE_REAP_ROWS], bytes = 0;
	struct db_stmt *s;
	enum rc rc;
	int n = 0, i;

	assert(op->limit <= STORE_REAP_ROWS);
	op->n = 0;
	s = db_stmt(db, QUERY_REAP_ROWS);
	db_bind_int(s, 1, now);
	db_bind_int(s, 2, op->limit);
	while ((rc = db_step_row(s)) == RC_OK && n < op->limit &&
	    bytes < STORE_REAP_BYTES) {
		ids[n++] = db_column_int(s, 0);
		bytes += db_column_int(s, 1);
	}
	db_reset(s);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	if (n == 0)
		return RC_OK;
	if ((rc = db_step_done(db_stmt(db, QUERY_REAP_MARK))) != RC_OK)
		return rc;
	for (i = 0; i < n; i++)
		if ((rc = delete_past(db, ids[i], now)) != RC_OK)
			return rc;
	op->n = n;
	return give_back(db);
}

static enum rc
run_clock(const struct op_clock *op, struct db *db, int64_t now)
{
	struct db_stmt *s;

	s = db_stmt(db, op->touch ? QUERY_CLOCK_TOUCH : QUERY_CLOCK_LAST);
	db_bind_int(s, 1, now);
	if (!op->touch)
		db_bind_int(s, 2, op->grain);
	return db_step_done(s);
}

enum rc
op_run(struct op *op, struct db *db, int64_t now)
{
	switch (op->kind) {
	case OP_RESERVE:
		return run_reserve(&op->reserve, db, now);
	case OP_SETTLE:
		return run_settle(&op->settle, db, now);
	case OP_SWEEP:
		return run_sweep(&op->sweep, db);
	case OP_REAP:
		return run_reap(&op->reap, db, now);
	case OP_CLOCK:
		return run_clock(&op->clock, db, now);
	}
	assert(!"no such operation");
	return RC_INVALID;
}
