/*
 * See store_place.h.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "downstream.h"
#include "store_kept.h"
#include "store_recent.h"
#include "store_record.h"
#include "store_row.h"
#include "store_place.h"

enum rc
store_place_spec(struct db *db, const char *fingerprint_spec, int64_t *id)
{
	struct db_stmt *s = db_stmt(db, QUERY_FINGERPRINT_SPEC_FIND);
	enum rc rc;

	db_bindf(s, "s", fingerprint_spec);
	rc = db_onef(s, "i", id);
	if (rc != RC_NOTFOUND)
		return rc;
	s = db_stmt(db, QUERY_FINGERPRINT_SPEC_NEW);
	db_bindf(s, "s", fingerprint_spec);
	rc = db_onef(s, "i", id);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* Whether the caller has reached max for a kind of keys; 0: no limit. */
static enum rc
is_beyond(
    struct db *db, enum query query, int64_t caller, unsigned max, bool *beyond)
{
	struct db_stmt *s;
	enum rc rc;

	*beyond = false;
	if (max == 0)
		return RC_OK;
	s = db_stmt(db, query);
	db_bindf(s, "ii", caller, (int64_t)max - 1);
	rc = db_onef(s, "-");
	*beyond = rc == RC_OK;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Whether the store has no room for a new key; *decision says so then. */
static enum rc
check_new(struct db *db, const struct store_reservation *what,
    enum decision *decision)
{
	int64_t used = 0;
	bool beyond;
	enum rc rc = RC_OK;

	if (what->max_store != 0)
		rc = store_used_bytes(db, &used);
	if (rc == RC_OK && (uint64_t)used > what->max_store &&
	    what->max_store != 0) {
		*decision = DECIDE_FULL;
		return RC_OK;
	}
	if (rc == RC_OK)
		rc = is_beyond(db, QUERY_OPEN_BEYOND, what->caller,
		    what->max_open, &beyond);
	if (rc == RC_OK && beyond)
		*decision = DECIDE_OPEN;
	return rc;
}

/* Whether a limit keeps the request from running.  Limits do not hold up a key
 * that already waits for a worker. */
static enum rc
check_limits(struct db *db, const struct stage *st, const struct record *found,
    int64_t now, enum decision *decision)
{
	const struct store_reservation *what = st->what;
	const bool is_new = store_place_is_new(found, now);
	bool beyond;
	enum rc rc;

	if (*decision != DECIDE_RUN || (found->queued && !is_new))
		return RC_OK;
	rc = is_beyond(
	    db, QUERY_ACTIVE_BEYOND, what->caller, what->max_active, &beyond);
	if (beyond)
		*decision = DECIDE_CROWDED;
	if (rc != RC_OK || beyond)
		return rc;
	if (is_new)
		rc = check_new(db, what, decision);
	if (rc != RC_OK || *decision != DECIDE_RUN)
		return rc;
	rc = store_kept_is_full(db, st, found->id, &beyond);
	if (rc == RC_OK && beyond)
		*decision = DECIDE_NO_ROOM;
	return rc;
}

bool
store_place_is_new(const struct record *found, int64_t now)
{
	return found->id == 0 || decide_is_past(found, now);
}

enum rc
store_place_find(struct db *db, const struct stage *st, int64_t now,
    struct record *found, enum decision *decision)
{
	const struct store_reservation *what = st->what;
	enum decide_match match;
	enum rc rc;

	record_free(found);
	memset(found, 0, sizeof(*found));
	rc = store_row_find(db, &what->identity, st->identity, found);
	if (rc == RC_NOTFOUND) {
		*decision = decide(NULL, true, true, now);
		assert(*decision == DECIDE_RUN);
		return check_limits(db, st, found, now, decision);
	}
	if (rc != RC_OK)
		return rc;
	record_check(found);
	match = decide_match(found, what->fingerprint_spec, what->fingerprint);
	if (match == DECIDE_OTHER_SPEC && !decide_is_past(found, now)) {
		*decision = DECIDE_BUSY;
		return RC_OK;
	}
	*decision =
	    decide(found, decide_is_mine(found, what->peer, what->cookie),
		match == DECIDE_SAME, now);
	return check_limits(db, st, found, now, decision);
}

static enum rc
delete_past(struct db *db, const struct record *old, int64_t now)
{
	struct record r = *old;
	struct step s = { 0 };
	enum rc rc = step_expire(&r, store_record_time(now), &s);

	assert(rc != RC_OK || s.gone);
	if (rc == RC_OK)
		rc = store_record_write(db, old, &r, &s, NULL);
	return rc == RC_LOST ? RC_CORRUPT : rc;
}

enum rc
store_place_make(struct db *db, const unsigned char *secret, const char *uuid,
    int64_t now, struct record *found)
{
	struct record r = { .state = RECORD_NONE, .recovery_point = "started" };
	int64_t recent;
	enum rc rc;

	if (!store_place_is_new(found, now))
		return RC_OK;
	rc = db_onef(db_stmt(db, QUERY_NEW_ID), "ii", &r.id, &recent);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	if ((rc = store_recent_list(db, r.id, recent)) != RC_OK)
		return rc;
	if (found->id != 0 && (rc = delete_past(db, found, now)) != RC_OK)
		return rc;
	snprintf(r.downstream, sizeof(r.downstream), "%s", uuid);
	record_free(found);
	*found = r;
	return downstream_bind(secret, found->id, found->downstream);
}

enum rc
store_place_take(struct db *db, struct stage *st, const struct record *was,
    const struct record *r, const struct step *s)
{
	enum rc rc = was->state == RECORD_NONE
	    ? store_record_insert(db, &st->what->identity, st->identity, r)
	    : store_record_write(db, was, r, s, NULL);

	return rc == RC_OK && s->request == STEP_SET
	    ? store_kept_request(db, r->id, st)
	    : rc;
}

void
store_place_found(
    enum decision decision, struct record *found, struct record *out)
{
	*out = *found;
	memset(found, 0, sizeof(*found));
	if (decision != DECIDE_RUN && !decide_is_limit(decision))
		record_check(out);
}
