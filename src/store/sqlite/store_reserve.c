/*
 * Reserve: a request takes the lease of its key and runs at once.
 */
#include "config.h"

#include <string.h>

#include "uuid.h"
#include "rows.h"
#include "store_impl.h"
#include "store_place.h"
#include "store_recent.h"
#include "store_record.h"

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
reserve_place(struct reserve_write *r, struct db *db, int64_t now)
{
	struct record *found = &r->found;
	struct step_terms terms;
	struct step s = { 0 };
	struct record was;
	enum rc rc;

	rc = store_place_make(db, r->secret, r->uuid, now, found);
	if (rc != RC_OK)
		return rc;
	was = *found;
	rows_terms(r->what, r->lease->token, r->owner, &terms);
	terms.resource = r->what->resource ? r->resource : NULL;
	terms.keep_request = r->stage.keep;
	rc = step_reserve(found, &terms, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_place_take(db, &r->stage, &was, found, &s);
	if (was.state != RECORD_NONE)
		r->w.did |= WRITE_AGAIN;
	if (rc == RC_OK)
		rows_lease(found, r->lease);
	return rc;
}

static enum rc
reserve_run(struct write *w, struct db *db, int64_t now)
{
	struct reserve_write *r = (struct reserve_write *)w;
	struct record *found = &r->found;
	enum rc rc;

	store_stage_begin_run(&r->stage, w);
	rc = store_place_find(db, &r->stage, now, found, &r->decision);
	if (rc != RC_OK || r->decision != DECIDE_RUN)
		return rc;
	if (store_stage_has_more(&r->stage))
		return store_stage_piece(&r->stage, w, db);
	rc = reserve_place(r, db, now);
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
