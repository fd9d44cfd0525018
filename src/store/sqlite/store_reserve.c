/*
 * Reserve: a request takes the lease of its key and runs at once.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "downstream.h"
#include "uuid.h"
#include "rows.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_place.h"
#include "store_recent.h"
#include "verb.h"

struct reserve_write {
	struct write w;
	const struct store_reservation *what;
	struct stage stage;
	int64_t owner;
	struct store_lease *lease; /* token and a new downstream filled in */
	const unsigned char *secret;
	char uuid[UUID_LEN + 1]; /* what a new downstream key is made of */
	char resource[RECORD_RESOURCE_LEN + 1];
	enum decision decision;
	struct record found;
};

static enum rc
reserve_new(struct reserve_write *r, struct db *db, int64_t now)
{
	const struct store_reservation *what = r->what;
	const struct store_identity *identity = &what->identity;
	struct store_lease *lease = r->lease;
	struct db_stmt *s;
	int64_t fingerprint_spec;
	enum rc rc;

	/* The downstream key of an earlier run must not stay. */
	memcpy(lease->downstream, r->uuid, sizeof(lease->downstream));
	rc = store_place_make(db, &r->found, what->fingerprint_spec, now,
	    &lease->id, &fingerprint_spec);
	if (rc == RC_OK)
		rc = downstream_bind(r->secret, lease->id, lease->downstream);
	if (rc != RC_OK)
		return rc;
	lease->attempt = 1;
	snprintf(
	    lease->recovery_point, sizeof(lease->recovery_point), "started");
	s = db_stmt(db, QUERY_RESERVE_NEW);
	db_bindf(s, "issssiibiusiisizzzsi", lease->id, identity->key,
	    identity->path, identity->scope, lease->token, r->owner,
	    now + what->lease, what->fingerprint, (size_t)FINGERPRINT_LEN,
	    fingerprint_spec, lease->downstream, verb_on_crash(what->on_crash),
	    what->retention, clock_wall(), verb_on_expired(what->on_expired),
	    rows_expired_retention(what), rows_lock(what->attempt),
	    rows_lock_file(what->attempt), what->reconcile_delay,
	    what->resource ? r->resource : NULL, r->stage.identity);
	rc = verb_change_state(s, RECORD_NONE, RECORD_IN_PROGRESS, RC_CORRUPT);
	if (rc != RC_OK || !r->stage.keep)
		return rc;
	return store_kept_request(db, lease->id, &r->stage);
}

static enum rc
reserve_again(struct reserve_write *r, struct db *db, int64_t now)
{
	const struct store_reservation *what = r->what;
	const struct record *old = &r->found;
	struct store_lease *lease = r->lease;
	struct db_stmt *s = db_stmt(db, QUERY_RESERVE_AGAIN);
	enum rc rc;

	lease->id = old->id;
	lease->attempt = old->attempt + 1;
	memcpy(lease->downstream, old->downstream, sizeof(lease->downstream));
	db_bindf(s, "idsiisiisizzzs", old->id, old->attempt, lease->token,
	    r->owner, now + what->lease, verb_on_crash(what->on_crash),
	    what->retention, clock_wall(), verb_on_expired(what->on_expired),
	    rows_expired_retention(what), rows_lock(what->attempt),
	    rows_lock_file(what->attempt), what->reconcile_delay,
	    what->resource ? r->resource : NULL);
	rc = verb_change_state(s, old->state, RECORD_IN_PROGRESS, RC_CORRUPT);
	if (rc != RC_OK)
		return rc;
	return r->stage.keep ? store_kept_request(db, old->id, &r->stage)
			     : store_kept_delete_request(db, old->id);
}

static enum rc
reserve_run(struct write *w, struct db *db, int64_t now)
{
	struct reserve_write *r = (struct reserve_write *)w;
	struct record *found = &r->found;
	enum rc rc;

	store_stage_begin_run(&r->stage, w);
	rc =
	    store_place_find(db, &r->stage, now, found, r->lease, &r->decision);
	if (rc != RC_OK || r->decision != DECIDE_RUN)
		return rc;
	if (store_stage_has_more(&r->stage))
		return store_stage_piece(&r->stage, w, db);
	rc = store_place_is_new(found, now) ? reserve_new(r, db, now)
					    : reserve_again(r, db, now);
	record_free(found);
	memset(found, 0, sizeof(*found));
	return rc;
}

/* Before the committer's thread runs it: that thread is the only one, and each
 * call for random bytes is one into the kernel. */
static void
reserve_draw(struct reserve_write *r)
{
	uuid_random(r->uuid);
	uuid_digits(r->lease->token);
	if (r->what->resource)
		uuid_digits(r->resource);
}

enum rc
sqlite_reserve(struct store *store, const struct store_reservation *what,
    struct store_lease *lease, enum decision *decision, struct record *found)
{
	struct reserve_write r = {
		.w.run = reserve_run,
		.w.flags = WRITE_NEW | WRITE_REFUSABLE,
		.what = what,
		.lease = lease,
		.secret = store->secret,
	};
	struct liveness *liveness;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(lease, 0, sizeof(*lease));
	/* Reading costs little here. */
	*decision = DECIDE_BUSY;
	if (what->unseen)
		return RC_OK;
	if ((rc = store_may_lease(store, what, &liveness)) != RC_OK)
		return rc;
	reserve_draw(&r);
	r.owner = liveness_self(liveness);
	rc =
	    store_stage_init(&r.stage, store, what, what->reconcile_delay != 0);
	r.w.flags |= store_stage_flags(&r.stage);
	if (rc == RC_OK)
		rc = store_recent_do(store, &r.w);
	store_stage_end(&r.stage, store, rc);
	if (rc == RC_OK) {
		*decision = r.decision;
		store_place_found(r.decision, &r.found, found);
	}
	record_free(&r.found);
	return rc;
}
