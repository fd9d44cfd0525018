/*
 * Accept: a request is stored and queued, and a worker runs it later.
 */
#include "config.h"

#include <string.h>

#include "uuid.h"
#include "rows.h"
#include "store_check.h"
#include "store_impl.h"
#include "store_place.h"
#include "store_recent.h"
#include "store_record.h"

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
accept_take(struct accept_write *a, struct db *db, int64_t now)
{
	struct record *found = &a->found;
	struct step_terms terms;
	struct step s = { 0 };
	char uuid[UUID_LEN + 1];
	struct record was;
	enum rc rc;

	uuid_random(uuid);
	rc = store_place_make(db, a->secret, uuid, now, found);
	if (rc != RC_OK)
		return rc;
	was = *found;
	rows_terms(a->what, NULL, 0, &terms);
	terms.resource = a->ticket->resource;
	rc = step_accept(found, &terms, store_record_time(now), &s);
	memcpy(a->ticket->resource, found->resource, sizeof(found->resource));
	return rc == RC_OK ? store_place_take(db, &a->stage, &was, found, &s)
			   : rc;
}

/* One caller fills at most half of the queue. */
static enum rc
is_queue_full(const struct accept_write *a, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_QUEUE_LENGTH);
	const unsigned max = a->max_queue;
	int64_t all, own;
	enum rc rc;

	db_bindf(s, "ii", now, a->what->caller);
	rc = db_onef(s, "ii", &all, &own);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	a->ticket->full = all >= max || (max > 1 && own >= max / 2);
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
	return accept_take(a, db, now);
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
	rc = store_place_find(db, &a->stage, now, &a->found, &a->decision);
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
