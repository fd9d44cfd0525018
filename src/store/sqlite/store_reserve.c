/*
 * How a key gets its lease: the request that runs it reserves it at once, or
 * the key is accepted and a worker takes it up.  Each operation reads the key
 * again within its transaction, and changes only that state.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "uuid.h"
#include "store_ops.h"

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

/* Binds the terms of the time after the attempt, for both kinds of reservation:
 * columns from on_expired to reconcile_delay, as parameters i and up. */
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

/* Stores the request, for a worker or a reconciler. */
static enum rc
write_request(struct db *db, int64_t id, const struct store_reservation *w)
{
	struct db_stmt *s = db_stmt(db, QUERY_REQUEST_NEW);
	struct db_blob *blob = NULL;
	enum rc rc;

	if ((rc = store_ops_room(db, w->body_len)) != RC_OK ||
	    (rc = store_ops_delete_request(db, id)) != RC_OK ||
	    (rc = store_ops_add_kept(
		 db, (int64_t)(w->environment_len + w->body_len))) != RC_OK)
		return rc;
	db_bind_int(s, 1, id);
	db_bind_blob(s, 2, w->environment, w->environment_len);
	db_bind_int(s, 3, (int64_t)w->body_len);
	rc = db_step_done(s);
	if (rc != RC_OK || w->body_len == 0)
		return rc;
	rc = db_blob_open(db, "once_request", "body", id, true, &blob);
	/* SQLite copies a page at a time, so a mapped body is never whole in
	 * memory. */
	if (rc == RC_OK)
		rc = db_blob_write(blob, w->body, w->body_len, 0);
	db_blob_close(blob);
	return rc;
}

/* Whether the scope has reached max for a kind of keys; 0: no limit. */
static enum rc
check_scope(struct db *db, enum query query, const char *scope, unsigned max,
    bool *crowded)
{
	struct db_stmt *s;
	enum rc rc;

	*crowded = false;
	if (max == 0)
		return RC_OK;
	s = db_stmt(db, query);
	db_bind_text(s, 1, scope);
	db_bind_int(s, 2, max - 1);
	rc = db_step_row(s);
	db_reset(s);
	*crowded = rc == RC_OK;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Whether max_kept leaves no room for the request, if it is to be stored.  It
 * replaces the request stored with the same key. */
static enum rc
check_kept(
    struct db *db, const struct store_reservation *w, int64_t id, bool *crowded)
{
	const uint64_t more = (uint64_t)w->environment_len + w->body_len;
	int64_t kept, own = 0;
	enum rc rc;

	*crowded = false;
	if (w->environment == NULL || w->max_kept == 0)
		return RC_OK;
	rc = store_ops_kept(db, &kept);
	if (rc == RC_OK && id != 0)
		rc = store_ops_kept_with(db, id, &own);
	*crowded = rc == RC_OK && (uint64_t)(kept - own) + more > w->max_kept;
	return rc;
}

static bool
is_new(const struct record *found, int64_t now)
{
	return found->id == 0 || decide_is_past(found, now);
}

/* Whether a limit keeps the request from running.  Limits do not hold up a key
 * that already waits for a worker. */
static enum rc
check_crowd(struct db *db, const struct store_reservation *w,
    const struct record *found, int64_t now, enum decision *decision)
{
	const char *scope = w->identity.scope;
	bool crowded;
	enum rc rc;

	if (*decision != DECIDE_RUN || (found->queued && !is_new(found, now)))
		return RC_OK;
	rc = check_scope(
	    db, QUERY_ACTIVE_BEYOND, scope, w->max_active, &crowded);
	if (crowded)
		*decision = DECIDE_CROWDED;
	if (rc != RC_OK || crowded)
		return rc;
	if (is_new(found, now))
		rc = check_scope(
		    db, QUERY_OPEN_BEYOND, scope, w->max_open, &crowded);
	if (crowded)
		*decision = DECIDE_OPEN;
	if (rc != RC_OK || crowded)
		return rc;
	rc = check_kept(db, w, found->id, &crowded);
	if (crowded)
		*decision = DECIDE_NO_ROOM;
	return rc;
}

/*
 * Reads the record of that identity and decides.  DECIDE_RUN: found is past its
 * retention or may run again; or there is no record, and found->id is 0.
 */
static enum rc
look(struct db *db, const struct store_reservation *w, int64_t now,
    struct record *found, struct store_lease *lease, enum decision *decision)
{
	enum rc rc;
	bool same;

	record_free(found);
	memset(found, 0, sizeof(*found));
	rc = store_ops_find(db, &w->identity, found, lease, NULL);
	if (rc == RC_NOTFOUND) {
		*decision = decide(NULL, true, now);
		assert(*decision == DECIDE_RUN);
		return check_crowd(db, w, found, now, decision);
	}
	if (rc != RC_OK)
		return rc;
	record_check(found);
	if (!decide_is_past(found, now) &&
	    strcmp(found->recipe, w->recipe) != 0) {
		*decision = DECIDE_BUSY;
		return RC_OK;
	}
	same = memcmp(found->fingerprint, w->fingerprint, FINGERPRINT_LEN) == 0;
	*decision = decide(found, same, now);
	return check_crowd(db, w, found, now, decision);
}

/* Makes place for a new key: deletes the old one, past its retention. */
static enum rc
make_place(struct db *db, const struct record *old, const char *text,
    int64_t now, int64_t *id, int64_t *recipe)
{
	struct db_stmt *s = db_stmt(db, QUERY_NEW_ID);
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	*id = db_column_int(s, 0);
	db_reset(s);
	if (old->id != 0 &&
	    (rc = store_ops_delete_past(db, old->id, old->state, now)) != RC_OK)
		return rc;
	return recipe_id(db, text, recipe);
}

/* Makes a name for the key's status resource, if it gets one, and binds it as
 * parameter i.  The name must live until the statement is run. */
static bool
bind_resource(struct db_stmt *s, int i, const struct store_reservation *w,
    char name[RECORD_RESOURCE_LEN + 1])
{
	if (!w->resource)
		return true;
	if (!store_ops_token(name))
		return false;
	db_bind_text(s, i, name);
	return true;
}

/* --- reserving ----------------------------------------------------------- */

static enum rc
reserve_new(struct op_reserve *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	char resource[RECORD_RESOURCE_LEN + 1];
	struct store_lease *lease = op->lease;
	struct db_stmt *s;
	int64_t recipe;
	enum rc rc;

	rc = make_place(db, &op->found, w->recipe, now, &lease->id, &recipe);
	if (rc != RC_OK)
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
	if (!bind_resource(s, 19, w, resource))
		return RC_IO;
	rc = store_ops_change_state(
	    s, RECORD_NONE, RECORD_IN_PROGRESS, RC_CORRUPT);
	if (rc != RC_OK || w->reconcile_delay == 0)
		return rc;
	return write_request(db, lease->id, w);
}

static enum rc
reserve_again(struct op_reserve *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	const struct record *old = &op->found;
	char resource[RECORD_RESOURCE_LEN + 1];
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
	if (!bind_resource(s, 14, w, resource))
		return RC_IO;
	rc = store_ops_change_state(
	    s, old->state, RECORD_IN_PROGRESS, RC_CORRUPT);
	if (rc != RC_OK)
		return rc;
	return w->reconcile_delay == 0 ? store_ops_delete_request(db, old->id)
				       : write_request(db, old->id, w);
}

enum rc
store_ops_reserve(struct op_reserve *op, struct db *db, int64_t now)
{
	struct record *found = &op->found;
	enum rc rc;

	/* The downstream key of an earlier run of this operation must not
	 * stay. */
	if (!store_ops_token(op->lease->token))
		return RC_IO;
	uuid_random(op->lease->downstream);
	rc = look(db, op->what, now, found, op->lease, &op->decision);
	if (rc != RC_OK || op->decision != DECIDE_RUN)
		return rc;
	rc = is_new(found, now) ? reserve_new(op, db, now)
				: reserve_again(op, db, now);
	record_free(found);
	memset(found, 0, sizeof(*found));
	return rc;
}

/* --- accepting ----------------------------------------------------------- */

static enum rc
accept_new(struct op_accept *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	char downstream[RECORD_UUID_LEN + 1];
	struct db_stmt *s;
	int64_t id, recipe;
	enum rc rc;

	rc = make_place(db, &op->found, w->recipe, now, &id, &recipe);
	if (rc != RC_OK)
		return rc;
	uuid_random(downstream);
	s = db_stmt(db, QUERY_ACCEPT_NEW);
	db_bind_int(s, 1, id);
	db_bind_text(s, 2, w->identity.key);
	db_bind_text(s, 3, w->identity.path);
	db_bind_text(s, 4, w->identity.scope);
	db_bind_blob(s, 5, w->fingerprint, FINGERPRINT_LEN);
	db_bind_int(s, 6, recipe);
	db_bind_text(s, 7, downstream);
	db_bind_text(s, 8, on_crash_name(w->on_crash));
	db_bind_int(s, 9, w->retention);
	db_bind_int(s, 10, clock_wall());
	db_bind_text(s, 11, on_expired_name(w->on_expired));
	db_bind_int(s, 12, w->expired_retention);
	if (w->reconcile_delay != 0)
		db_bind_int(s, 13, w->reconcile_delay);
	db_bind_int(s, 14, now);
	db_bind_text(s, 15, op->ticket->resource);
	rc = store_ops_change_state(s, RECORD_NONE, RECORD_PENDING, RC_CORRUPT);
	return rc == RC_OK ? write_request(db, id, w) : rc;
}

static enum rc
accept_again(struct op_accept *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct store_ticket *ticket = op->ticket;
	char offered[RECORD_RESOURCE_LEN + 1];
	struct db_stmt *s;
	enum rc rc;

	memcpy(offered, ticket->resource, sizeof(offered));
	s = db_stmt(db, QUERY_ACCEPT_AGAIN);
	db_bind_int(s, 1, op->found.id);
	db_bind_int(s, 2, op->found.attempt);
	db_bind_int(s, 3, now);
	db_bind_int(s, 4, clock_wall());
	db_bind_int(s, 5, w->retention);
	db_bind_text(s, 6, offered);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	if (!store_ops_copy(s, 0, ticket->resource, sizeof(ticket->resource)))
		rc = RC_CORRUPT;
	db_reset(s);
	return rc == RC_OK ? write_request(db, op->found.id, w) : rc;
}

/* One scope fills at most half of the queue; the empty scope may fill it. */
static enum rc
queue_is_full(
    struct db *db, unsigned max, const char *scope, int64_t now, bool *full)
{
	struct db_stmt *s = db_stmt(db, QUERY_QUEUE_LENGTH);
	enum rc rc;

	db_bind_int(s, 1, now);
	db_bind_text(s, 2, scope);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	*full = db_column_int(s, 0) >= max ||
	    (*scope != '\0' && max > 1 && db_column_int(s, 1) >= max / 2);
	db_reset(s);
	return RC_OK;
}

enum rc
store_ops_accept(struct op_accept *op, struct db *db, int64_t now)
{
	struct store_ticket *ticket = op->ticket;
	struct record *found = &op->found;
	enum rc rc;

	ticket->full = false;
	if (!store_ops_token(ticket->resource))
		return RC_IO;
	rc = look(db, op->what, now, found, NULL, &op->decision);
	if (rc != RC_OK || op->decision != DECIDE_RUN) {
		ticket->resource[0] = '\0';
		return rc;
	}
	if (found->queued && !is_new(found, now)) /* it is queued already */
		memcpy(ticket->resource, found->resource,
		    sizeof(ticket->resource));
	else if ((rc = queue_is_full(db, op->max_queue,
		      op->what->identity.scope, now, &ticket->full)) != RC_OK ||
	    ticket->full)
		ticket->resource[0] = '\0';
	else
		rc = is_new(found, now) ? accept_new(op, db, now)
					: accept_again(op, db, now);
	record_free(found);
	memset(found, 0, sizeof(*found));
	return rc;
}

/* --- taking up what was accepted ----------------------------------------- */

enum rc
store_ops_start(const struct op_start *op, struct db *db, int64_t now)
{
	const struct store_reservation *w = op->what;
	struct store_lease *lease = op->lease;
	const enum record_state from =
	    op->job->attempt == 0 ? RECORD_PENDING : RECORD_FAILED_RETRYABLE;
	struct db_stmt *s;
	enum rc rc;

	if (!record_may_change(from, RECORD_IN_PROGRESS, false))
		return RC_INVALID;
	if (!store_ops_token(lease->token))
		return RC_IO;
	lease->id = op->job->id;
	lease->attempt = op->job->attempt + 1;
	s = db_stmt(db, QUERY_JOB_START);
	db_bind_int(s, 1, lease->id);
	db_bind_int(s, 2, op->job->attempt);
	db_bind_text(s, 3, lease->token);
	db_bind_int(s, 4, op->owner);
	db_bind_int(s, 5, now + w->lease);
	db_bind_text(s, 6, on_crash_name(w->on_crash));
	db_bind_int(s, 7, w->retention);
	db_bind_int(s, 8, clock_wall());
	bind_after(s, 9, w);
	db_bind_int(s, 14, now);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	if (!store_ops_copy(
		s, 0, lease->downstream, sizeof(lease->downstream)) ||
	    !store_ops_copy(
		s, 1, lease->recovery_point, sizeof(lease->recovery_point)))
		rc = RC_CORRUPT;
	db_reset(s);
	return rc;
}
