/*
 * Accept: a request is stored and queued, and a worker runs it later.
 */
#include "config.h"

#include <string.h>

#include "downstream.h"
#include "fault.h"
#include "uuid.h"
#include "postgres_place.h"
#include "rows.h"
#include "store_check.h"

struct accept {
	struct postgres_place place;
	unsigned max_queue;
	struct store_ticket *ticket;
	bool queued; /* it was queued already */
};

/* RC_LOST: another process was faster; RC_EXISTS: a limit holds it up. */
static enum rc
accept_taken(struct accept *a, const struct postgres_limits *limits, int64_t id)
{
	if (id != 0)
		return RC_OK;
	a->place.decision = postgres_place_limit(limits);
	if (a->place.decision != DECIDE_RUN)
		a->ticket->full = false;
	return a->place.decision != DECIDE_RUN || a->ticket->full ? RC_EXISTS
								  : RC_LOST;
}

static enum rc
accept_new(struct accept *a, struct pg *pg)
{
	struct postgres_place *p = &a->place;
	const struct store_reservation *what = p->what;
	const struct store_identity *identity = &what->identity;
	char downstream[RECORD_UUID_LEN + 1];
	struct postgres_limits limits;
	int64_t id;
	enum rc rc;

	if ((rc = postgres_place_make(p, pg)) != RC_OK)
		return rc;
	id = postgres_place_id(p);
	uuid_random(downstream);
	if ((rc = downstream_bind(p->store->secret, id, downstream)) != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_ACCEPT_NEW, "isiiibbiibssbiu?i?izsisusu", id,
	    what->peer, what->caller, (int64_t)what->max_active,
	    postgres_place_max_kept(what), what->environment,
	    what->environment_len, what->body, what->body_len,
	    (int64_t)a->max_queue, (int64_t)p->store->base.queued_from,
	    p->digest, sizeof(p->digest), identity->key, identity->path,
	    what->fingerprint, (size_t)FINGERPRINT_LEN, p->fingerprint_spec,
	    downstream, what->on_crash == CONF_CRASH_RESUME, what->retention,
	    what->on_expired == CONF_EXPIRED_GONE, rows_expired_retention(what),
	    what->reconcile_delay, a->ticket->resource, (int64_t)what->max_open,
	    identity->scope, what->cookie, what->method, what->instance);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i????m", &id, &limits.crowded, &limits.open,
		    &limits.no_room, &a->ticket->full, &p->now);
	return rc == RC_OK ? accept_taken(a, &limits, id) : rc;
}

static enum rc
accept_again(struct accept *a, struct pg *pg)
{
	struct postgres_place *p = &a->place;
	const struct store_reservation *what = p->what;
	struct postgres_limits limits = { .open = false };
	char resource[RECORD_RESOURCE_LEN + 1];
	int64_t id;
	enum rc rc;

	if ((rc = postgres_place_spec(p, pg)) != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_ACCEPT_AGAIN, "isiiibbiidisbiusu", p->found.id,
	    what->peer, what->caller, (int64_t)what->max_active,
	    postgres_place_max_kept(what), what->environment,
	    what->environment_len, what->body, what->body_len,
	    (int64_t)a->max_queue, (int64_t)p->store->base.queued_from,
	    p->found.attempt, what->retention, a->ticket->resource,
	    what->fingerprint, (size_t)FINGERPRINT_LEN, p->fingerprint_spec,
	    what->cookie, what->method, what->instance);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i???mf", &id, &limits.crowded, &limits.no_room,
		    &a->ticket->full, &p->now, resource, sizeof(resource));
	if (rc == RC_OK)
		rc = accept_taken(a, &limits, id);
	if (rc == RC_OK)
		memcpy(a->ticket->resource, resource, sizeof(resource));
	return rc;
}

/* RC_EXISTS: nothing is changed. */
static enum rc
accept_run(struct pg *pg, void *arg)
{
	struct accept *a = arg;
	struct postgres_place *p = &a->place;
	struct store_ticket *ticket = a->ticket;
	enum rc rc;

	for (int i = 0; i < POSTGRES_PLACE_TRIES; i++) {
		ticket->full = false;
		uuid_digits(ticket->resource);
		if ((rc = postgres_place_look(p, pg)) != RC_OK)
			return rc;
		if (p->decision != DECIDE_RUN)
			return RC_EXISTS;
		a->queued = p->found.queued && !p->is_new;
		if (a->queued) {
			memcpy(ticket->resource, p->found.resource,
			    sizeof(ticket->resource));
			return RC_EXISTS;
		}
		rc = p->is_new ? accept_new(a, pg) : accept_again(a, pg);
		if (rc != RC_LOST)
			return rc;
	}
	return RC_BUSY;
}

enum rc
postgres_accept(struct store *s, const struct store_reservation *what,
    unsigned max_queue, struct store_ticket *ticket, enum decision *decision,
    struct record *found)
{
	struct accept a = { .max_queue = max_queue, .ticket = ticket };
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(ticket, 0, sizeof(*ticket));
	if (!store_check_reservation(what, false) || what->environment == NULL)
		return RC_INVALID;
	if ((rc = postgres_place_may_begin(s, what->identity.path)) != RC_OK)
		return rc;
	FAULT(OP_ASKED);
	rc = postgres_place_init(&a.place, s, what, true);
	if (rc == RC_OK)
		rc = postgres_write(s, accept_run, &a);
	postgres_place_remember_result(s, rc);
	if (rc == RC_OK)
		postgres_news_made(&s->news);
	else if (rc != RC_EXISTS || !a.queued)
		ticket->resource[0] = '\0';
	/* RC_PENDING is not taken back: if the request is stored after all,
	 * another process may have begun to run it by then. */
	if (rc == RC_EXISTS)
		rc = RC_OK;
	*decision = a.place.decision;
	postgres_place_end(&a.place, rc, found);
	return rc;
}
