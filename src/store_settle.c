/*
 * What becomes of a leased key, and where its answer is kept.  Every change
 * here names the attempt's token: an attempt that lost its lease changes
 * nothing.
 */
#include "config.h"

#include <sys/statvfs.h>

#include <assert.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "store_ops.h"

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
	FAULT(BODY_MADE);
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
	rc = store_ops_change_one(s, RC_LOST);
	if (rc == RC_OK && apart)
		rc = store_body(db, w->id, r->body, r->body_len);
	return rc;
}

enum rc
store_ops_unknown(
    struct db *db, int64_t id, const char *token, const char *last_error)
{
	struct db_stmt *s = db_stmt(db, QUERY_SETTLE_UNKNOWN);

	db_bind_int(s, 1, id);
	db_bind_text(s, 2, token);
	db_bind_int(s, 3, clock_wall());
	if (last_error[0] != '\0')
		db_bind_text(s, 4, last_error);
	return store_ops_change_one(s, RC_LOST);
}

enum rc
store_ops_settle(struct op_settle *op, struct db *db, int64_t now)
{
	const struct store_settlement *w = &op->settlement;
	struct db_stmt *s;

	op->expires_at = 0;
	if (w->state == RECORD_UNKNOWN)
		return store_ops_unknown(db, w->id, w->token, w->last_error);
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
	return store_ops_change_one(s, RC_LOST);
}
