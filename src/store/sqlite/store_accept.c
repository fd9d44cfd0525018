/*
 * Accept: a request is stored and queued, and a worker runs it later.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "downstream.h"
#include "uuid.h"
#include "rows.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_place.h"
#include "store_recent.h"
#include "verb.h"

struct accept_write {
	struct write w;
	const struct store_reservation *what;
	struct stage stage;
	unsigned max_queue;
	struct store_ticket *ticket;
	const unsigned char *secret;
	enum decision decision;
	struct record found;
};

static enum rc
accept_new(struct accept_write *a, struct db *db, int64_t now)
{
	const struct store_reservation *what = a->what;
	const struct store_identity *identity = &what->identity;
	char downstream[RECORD_UUID_LEN + 1];
	struct db_stmt *s;
	int64_t id, fingerprint_spec;
	enum rc rc;

	rc = store_place_make(
	    db, &a->found, what->fingerprint_spec, now, &id, &fingerprint_spec);
	if (rc != RC_OK)
		return rc;
	uuid_random(downstream);
	if ((rc = downstream_bind(a->secret, id, downstream)) != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_ACCEPT_NEW);
	db_bindf(s, "isssbiusiisizisi", id, identity->key, identity->path,
	    identity->scope, what->fingerprint, (size_t)FINGERPRINT_LEN,
	    fingerprint_spec, downstream, verb_on_crash(what->on_crash),
	    what->retention, clock_wall(), verb_on_expired(what->on_expired),
	    rows_expired_retention(what), what->reconcile_delay, now,
	    a->ticket->resource, a->stage.identity);
	rc = verb_change_state(s, RECORD_NONE, RECORD_PENDING, RC_CORRUPT);
	return rc == RC_OK ? store_kept_request(db, id, &a->stage) : rc;
}

static enum rc
accept_again(struct accept_write *a, struct db *db, int64_t now)
{
	const struct store_reservation *what = a->what;
	char *resource = a->ticket->resource;
	char offered[RECORD_RESOURCE_LEN + 1];
	struct db_stmt *s;
	enum rc rc;

	memcpy(offered, resource, sizeof(offered));
	s = db_stmt(db, QUERY_ACCEPT_AGAIN);
	db_bindf(s, "idiiis", a->found.id, a->found.attempt, now, clock_wall(),
	    what->retention, offered);
	rc = db_onef(s, "f", resource, sizeof(offered));
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	return store_kept_request(db, a->found.id, &a->stage);
}

/* One scope fills at most half of the queue; the empty scope may fill it. */
static enum rc
is_queue_full(const struct accept_write *a, struct db *db, int64_t now)
{
	const char *scope = a->what->identity.scope;
	struct db_stmt *s = db_stmt(db, QUERY_QUEUE_LENGTH);
	const unsigned max = a->max_queue;
	int64_t all, own;
	enum rc rc;

	db_bindf(s, "is", now, scope);
	rc = db_onef(s, "ii", &all, &own);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	a->ticket->full =
	    all >= max || (*scope != '\0' && max > 1 && own >= max / 2);
	return RC_OK;
}

static enum rc
accept_decided(struct accept_write *a, struct db *db, int64_t now)
{
	const struct record *found = &a->found;
	struct store_ticket *ticket = a->ticket;
	const bool is_new = store_place_is_new(found, now);
	enum rc rc;

	if (found->queued && !is_new) { /* it is queued already */
		memcpy(ticket->resource, found->resource,
		    sizeof(ticket->resource));
		return RC_OK;
	}
	rc = is_queue_full(a, db, now);
	if (rc != RC_OK || ticket->full) {
		ticket->resource[0] = '\0';
		return rc;
	}
	if (store_stage_has_more(&a->stage))
		return store_stage_piece(&a->stage, &a->w, db);
	return is_new ? accept_new(a, db, now) : accept_again(a, db, now);
}

static enum rc
accept_run(struct write *w, struct db *db, int64_t now)
{
	struct accept_write *a = (struct accept_write *)w;
	struct store_ticket *ticket = a->ticket;
	enum rc rc;

	store_stage_begin_run(&a->stage, w);
	ticket->full = false;
	uuid_digits(ticket->resource);
	rc =
	    store_place_find(db, &a->stage, now, &a->found, NULL, &a->decision);
	if (rc != RC_OK || a->decision != DECIDE_RUN) {
		ticket->resource[0] = '\0';
		return rc;
	}
	rc = accept_decided(a, db, now);
	if (!ticket->full)
		w->did |= WRITE_MADE_WORK;
	record_free(&a->found);
	memset(&a->found, 0, sizeof(a->found));
	return rc;
}

enum rc
sqlite_accept(struct store *store, const struct store_reservation *what,
    unsigned max_queue, struct store_ticket *ticket, enum decision *decision,
    struct record *found)
{
	struct accept_write a = {
		.w.run = accept_run,
		.w.flags = WRITE_NEW | WRITE_REFUSABLE,
		.what = what,
		.max_queue = max_queue,
		.ticket = ticket,
		.secret = store->secret,
	};
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(ticket, 0, sizeof(*ticket));
	if (!store_check_reservation(what, false) || what->environment == NULL)
		return RC_INVALID;
	if ((rc = store_guard_check(&store->guard)) != RC_OK)
		return rc;
	rc = store_stage_init(&a.stage, store, what, true);
	a.w.flags |= store_stage_flags(&a.stage);
	if (rc == RC_OK)
		rc = store_recent_do(store, &a.w);
	store_stage_end(&a.stage, store, rc);
	if (rc == RC_OK) {
		*decision = a.decision;
		store_place_found(a.decision, &a.found, found);
	}
	record_free(&a.found);
	return rc;
}
