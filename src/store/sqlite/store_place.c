/*
 * See store_place.h.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "store_kept.h"
#include "store_recent.h"
#include "store_row.h"
#include "store_place.h"

static enum rc
find_fingerprint_spec(struct db *db, const char *fingerprint_spec, int64_t *id)
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

/* Whether the scope has reached max for a kind of keys; 0: no limit. */
static enum rc
is_beyond(struct db *db, enum query query, const char *scope, unsigned max,
    bool *beyond)
{
	struct db_stmt *s;
	enum rc rc;

	*beyond = false;
	if (max == 0)
		return RC_OK;
	s = db_stmt(db, query);
	db_bindf(s, "si", scope, (int64_t)max - 1);
	rc = db_onef(s, "-");
	*beyond = rc == RC_OK;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Whether a limit keeps the request from running.  Limits do not hold up a key
 * that already waits for a worker. */
static enum rc
check_limits(struct db *db, const struct stage *st, const struct record *found,
    int64_t now, enum decision *decision)
{
	const struct store_reservation *what = st->what;
	const char *scope = what->identity.scope;
	const bool is_new = store_place_is_new(found, now);
	bool beyond;
	enum rc rc;

	if (*decision != DECIDE_RUN || (found->queued && !is_new))
		return RC_OK;
	rc = is_beyond(
	    db, QUERY_ACTIVE_BEYOND, scope, what->max_active, &beyond);
	if (beyond)
		*decision = DECIDE_CROWDED;
	if (rc != RC_OK || beyond)
		return rc;
	if (is_new)
		rc = is_beyond(
		    db, QUERY_OPEN_BEYOND, scope, what->max_open, &beyond);
	if (beyond)
		*decision = DECIDE_OPEN;
	if (rc != RC_OK || beyond)
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
    struct record *found, struct store_lease *lease, enum decision *decision)
{
	const struct store_reservation *what = st->what;
	enum rc rc;
	bool same;

	record_free(found);
	memset(found, 0, sizeof(*found));
	rc = store_row_find(db, &what->identity, st->identity, found, lease);
	if (rc == RC_NOTFOUND) {
		*decision = decide(NULL, true, now);
		assert(*decision == DECIDE_RUN);
		return check_limits(db, st, found, now, decision);
	}
	if (rc != RC_OK)
		return rc;
	record_check(found);
	if (!decide_is_past(found, now) &&
	    strcmp(found->fingerprint_spec, what->fingerprint_spec) != 0) {
		*decision = DECIDE_BUSY;
		return RC_OK;
	}
	same =
	    memcmp(found->fingerprint, what->fingerprint, FINGERPRINT_LEN) == 0;
	*decision = decide(found, same, now);
	return check_limits(db, st, found, now, decision);
}

enum rc
store_place_make(struct db *db, const struct record *old,
    const char *fingerprint_spec, int64_t now, int64_t *id,
    int64_t *fingerprint_spec_id)
{
	int64_t recent;
	enum rc rc;

	rc = db_onef(db_stmt(db, QUERY_NEW_ID), "ii", id, &recent);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	if ((rc = store_recent_list(db, *id, recent)) != RC_OK)
		return rc;
	if (old->id != 0 &&
	    (rc = store_kept_delete_key(db, old->id, old->state, now)) != RC_OK)
		return rc;
	return find_fingerprint_spec(db, fingerprint_spec, fingerprint_spec_id);
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
