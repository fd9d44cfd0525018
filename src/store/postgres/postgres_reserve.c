/*
 * Reserve: a request takes the lease of its key and runs at once.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "downstream.h"
#include "fault.h"
#include "log.h"
#include "uuid.h"
#include "postgres_outcome.h"
#include "postgres_place.h"
#include "store_check.h"

struct reserve {
	struct postgres_place place;
	struct store_lease *lease;
	char resource[RECORD_RESOURCE_LEN + 1];
};

/* The result of a statement that took the place, or did not: RC_LOST, another
 * process was faster; RC_EXISTS, a limit keeps it from running. */
static enum rc
reserve_taken(
    struct reserve *r, const struct postgres_limits *limits, int64_t id)
{
	if (id != 0) {
		r->lease->id = id;
		return RC_OK;
	}
	r->place.decision = postgres_place_limit(limits);
	return r->place.decision == DECIDE_RUN ? RC_LOST : RC_EXISTS;
}

/* Before the statement that counts the keys in progress, if they are limited:
 * that one must see what another process has just committed. */
static void
reserve_lock(const struct postgres_place *p, struct pg *pg, bool limited)
{
	if (limited && p->what->max_active > 0)
		pg_send_quietly(pg, PG_QUERY_SCOPE_LOCK, "i", p->scope_id);
}

static enum rc
reserve_new(struct reserve *r, struct pg *pg)
{
	struct postgres_place *p = &r->place;
	const struct store_reservation *what = p->what;
	const struct store_identity *identity = &what->identity;
	struct store_lease *lease = r->lease;
	struct postgres_limits limits;
	int64_t id;
	enum rc rc;

	if ((rc = postgres_place_make(p, pg)) != RC_OK)
		return rc;
	lease->id = postgres_place_id(p);
	lease->attempt = 1;
	snprintf(
	    lease->recovery_point, sizeof(lease->recovery_point), "started");
	uuid_random(lease->downstream);
	rc = downstream_bind(p->store->secret, lease->id, lease->downstream);
	if (rc != RC_OK)
		return rc;
	reserve_lock(p, pg, true);
	pg_send(pg, PG_QUERY_RESERVE_NEW,
	    p->keep ? "isiiibbbsssiibiu?i?izzzti" : "isiiiobbsssiibiu?i?izzzti",
	    lease->id, identity->scope, p->scope_id, (int64_t)what->max_active,
	    postgres_place_max_kept(what), what->environment,
	    postgres_place_environment(p), what->body,
	    p->keep ? what->body_len : 0, p->digest, sizeof(p->digest),
	    identity->key, identity->path, lease->token, p->store->owner,
	    what->lease, what->fingerprint, (size_t)FINGERPRINT_LEN, p->recipe,
	    lease->downstream, what->on_crash == CONF_CRASH_RESUME,
	    what->retention, what->on_expired == CONF_EXPIRED_GONE,
	    postgres_place_expired_retention(what), postgres_place_lock(p),
	    postgres_place_lock_file(p), what->reconcile_delay, r->resource,
	    (int64_t)what->max_open);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i???m", &id, &limits.crowded, &limits.open,
		    &limits.no_room, &p->now);
	return rc == RC_OK ? reserve_taken(r, &limits, id) : rc;
}

static enum rc
reserve_again(struct reserve *r, struct pg *pg)
{
	struct postgres_place *p = &r->place;
	const struct store_reservation *what = p->what;
	const struct record *old = &p->found;
	/* Limits do not hold up a key that already waits for a worker. */
	const bool limited = !old->queued;
	struct store_lease *lease = r->lease;
	struct postgres_limits limits = { .open = false };
	int64_t id;
	enum rc rc;

	if (!record_may_change(old->state, RECORD_IN_PROGRESS, false))
		return RC_INVALID;
	lease->id = old->id;
	lease->attempt = old->attempt + 1;
	reserve_lock(p, pg, limited);
	pg_send(pg, PG_QUERY_RESERVE_AGAIN,
	    p->keep ? "isiiibbdsii?i?izzzt" : "isiiiobdsii?i?izzzt", old->id,
	    what->identity.scope, p->scope_id,
	    limited ? (int64_t)what->max_active : 0,
	    limited ? postgres_place_max_kept(what) : 0, what->environment,
	    postgres_place_environment(p), what->body,
	    p->keep ? what->body_len : 0, old->attempt, lease->token,
	    p->store->owner, what->lease, what->on_crash == CONF_CRASH_RESUME,
	    what->retention, what->on_expired == CONF_EXPIRED_GONE,
	    postgres_place_expired_retention(what), postgres_place_lock(p),
	    postgres_place_lock_file(p), what->reconcile_delay, r->resource);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i??muf", &id, &limits.crowded, &limits.no_room,
		    &p->now, lease->downstream, sizeof(lease->downstream),
		    lease->recovery_point, sizeof(lease->recovery_point));
	return rc == RC_OK ? reserve_taken(r, &limits, id) : rc;
}

/* RC_EXISTS: the decision is not to run, and nothing is changed. */
static enum rc
reserve_run(struct pg *pg, void *arg)
{
	struct reserve *r = arg;
	struct postgres_place *p = &r->place;
	enum rc rc;

	for (int i = 0; i < POSTGRES_PLACE_TRIES; i++) {
		uuid_digits(r->lease->token);
		if (p->what->resource)
			uuid_digits(r->resource);
		if ((rc = postgres_place_look(p, pg)) != RC_OK)
			return rc;
		if (p->decision != DECIDE_RUN)
			return RC_EXISTS;
		rc = p->is_new ? reserve_new(r, pg) : reserve_again(r, pg);
		if (rc != RC_LOST)
			return rc;
	}
	return RC_BUSY;
}

enum rc
postgres_reserve(struct store *s, const struct store_reservation *what,
    struct store_lease *lease, enum decision *decision, struct record *found)
{
	struct reserve r = { .lease = lease };
	enum rc rc;

	memset(found, 0, sizeof(*found));
	memset(lease, 0, sizeof(*lease));
	if (!store_check_reservation(what, true))
		return RC_INVALID;
	if ((rc = postgres_place_may_begin(s)) != RC_OK)
		return rc;
	FAULT(OP_ASKED);
	rc = postgres_place_init(&r.place, s, what, what->reconcile_delay != 0);
	if (rc == RC_OK)
		rc = postgres_write(s, reserve_run, &r);
	if (rc == RC_PENDING) {
		postgres_keeper_release(s, lease, what->retention, -1);
		rc = RC_IO;
	}
	if (rc == RC_EXISTS)
		rc = RC_OK;
	*decision = r.place.decision;
	postgres_place_end(&r.place, rc, found);
	return rc;
}
