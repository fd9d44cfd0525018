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
#include "rows.h"
#include "store_check.h"

/* If that many keys in a row were not there, the next one is expected not to
 * be there either: asking first would cost a round trip.  A client that tries
 * again ends that.  Builds with checks do it more often. */
#ifdef RECORD_CHECKS
#define EXPECTED 1
#else
#define EXPECTED 8
#endif

/* Bytes of a stored request that may share a transaction. */
#define SHARED_REQUEST 16384

struct reserve {
	struct postgres_place place;
	struct store_lease *lease;
	char resource[RECORD_RESOURCE_LEN + 1];
	bool sent;                 /* in a group */
	struct store_lease unread; /* of a group whose results were lost */
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
		pg_send_quietly(pg, PG_QUERY_CALLER_LOCK, "i", p->what->caller);
}

/* Makes the lease of a new key. */
static enum rc
reserve_lease(struct reserve *r)
{
	struct store_lease *lease = r->lease;

	lease->id = postgres_place_id(&r->place);
	lease->attempt = 1;
	lease->no_request = !r->place.keep;
	snprintf(
	    lease->recovery_point, sizeof(lease->recovery_point), "started");
	uuid_random(lease->downstream);
	return downstream_bind(
	    r->place.store->secret, lease->id, lease->downstream);
}

static void
reserve_tokens(struct reserve *r)
{
	uuid_digits(r->lease->token);
	if (r->place.what->resource)
		uuid_digits(r->resource);
}

static void
reserve_send(struct pg *pg, void *arg)
{
	const struct reserve *r = arg;
	const struct postgres_place *p = &r->place;
	const struct store_reservation *what = p->what;
	const struct store_identity *identity = &what->identity;
	const struct store_lease *lease = r->lease;

	reserve_lock(p, pg, true);
	pg_send(pg, PG_QUERY_RESERVE_NEW,
	    p->keep ? "isiiibbbsssiibiu?i?izzztisusu"
		    : "isiiiobbsssiibiu?i?izzztisusu",
	    lease->id, what->peer, what->caller, (int64_t)what->max_active,
	    postgres_place_max_kept(what), what->environment,
	    postgres_place_environment(p), what->body,
	    p->keep ? what->body_len : 0, p->digest, sizeof(p->digest),
	    identity->key, identity->path, lease->token, p->store->owner,
	    what->lease, what->fingerprint, (size_t)FINGERPRINT_LEN,
	    p->fingerprint_spec, lease->downstream,
	    what->on_crash == CONF_CRASH_RESUME, what->retention,
	    what->on_expired == CONF_EXPIRED_GONE, rows_expired_retention(what),
	    rows_lock(what->attempt), rows_lock_file(what->attempt),
	    what->reconcile_delay, r->resource, (int64_t)what->max_open,
	    identity->scope, what->cookie, what->method, what->instance);
}

static enum rc
reserve_read(struct reserve *r, struct pg *pg)
{
	struct postgres_place *p = &r->place;
	struct postgres_limits limits;
	int64_t id;
	enum rc rc;

	rc = pg_one(pg, "i???m", &id, &limits.crowded, &limits.open,
	    &limits.no_room, &p->now);
	return rc == RC_OK ? reserve_taken(r, &limits, id) : rc;
}

static enum rc
reserve_new(struct reserve *r, struct pg *pg)
{
	enum rc rc;

	if ((rc = postgres_place_make(&r->place, pg)) != RC_OK ||
	    (rc = reserve_lease(r)) != RC_OK)
		return rc;
	reserve_send(pg, r);
	rc = pg_sync(pg);
	return rc == RC_OK ? reserve_read(r, pg) : rc;
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
	if ((rc = postgres_place_spec(p, pg)) != RC_OK)
		return rc;
	lease->id = old->id;
	lease->attempt = old->attempt + 1;
	reserve_lock(p, pg, limited);
	pg_send(pg, PG_QUERY_RESERVE_AGAIN,
	    p->keep ? "isiiibbdsii?i?izzzt?biusu" : "isiiiobdsii?i?izzzt?biusu",
	    old->id, what->peer, what->caller,
	    limited ? (int64_t)what->max_active : 0,
	    limited ? postgres_place_max_kept(what) : 0, what->environment,
	    postgres_place_environment(p), what->body,
	    p->keep ? what->body_len : 0, old->attempt, lease->token,
	    p->store->owner, what->lease, what->on_crash == CONF_CRASH_RESUME,
	    what->retention, what->on_expired == CONF_EXPIRED_GONE,
	    rows_expired_retention(what), rows_lock(what->attempt),
	    rows_lock_file(what->attempt), what->reconcile_delay, r->resource,
	    old->queued, what->fingerprint, (size_t)FINGERPRINT_LEN,
	    p->fingerprint_spec, what->cookie, what->method, what->instance);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i??muf", &id, &limits.crowded, &limits.no_room,
		    &p->now, lease->downstream, sizeof(lease->downstream),
		    lease->recovery_point, sizeof(lease->recovery_point));
	return rc == RC_OK ? reserve_taken(r, &limits, id) : rc;
}

/* Whether the row that was found is that of the group whose results were
 * lost. */
static bool
reserve_is_mine(struct reserve *r)
{
	const struct record *found = &r->place.found;

	if (r->unread.id == 0 || found->id != r->unread.id ||
	    found->state != RECORD_IN_PROGRESS ||
	    strcmp(found->token, r->unread.token) != 0)
		return false;
	*r->lease = r->unread;
	r->place.decision = DECIDE_RUN;
	return true;
}

/* The caller must read the record first. */
static enum rc
reserve_not_unseen(struct reserve *r)
{
	struct postgres_place *p = &r->place;

	record_free(&p->found);
	memset(&p->found, 0, sizeof(p->found));
	p->decision = DECIDE_BUSY;
	return RC_EXISTS;
}

/* RC_EXISTS: the decision is not to run, and nothing is changed. */
static enum rc
reserve_run(struct pg *pg, void *arg)
{
	struct reserve *r = arg;
	struct postgres_place *p = &r->place;
	enum rc rc;

	for (int i = 0; i < POSTGRES_PLACE_TRIES; i++) {
		reserve_tokens(r);
		if ((rc = postgres_place_look(p, pg)) != RC_OK)
			return rc;
		if (reserve_is_mine(r))
			return RC_OK;
		if (p->what->unseen)
			return reserve_not_unseen(r);
		if (p->decision != DECIDE_RUN)
			return RC_EXISTS;
		rc = p->is_new ? reserve_new(r, pg) : reserve_again(r, pg);
		if (rc != RC_LOST)
			return rc;
	}
	return RC_BUSY;
}

/* --- in a group ----------------------------------------------------------- */

/* A large request that is stored, and the lock that a limit of callers needs,
 * would keep others waiting. */
static bool
reserve_may_share(struct reserve *r)
{
	struct postgres_place *p = &r->place;
	const struct store_reservation *what = p->what;

	if (p->keep && what->environment_len + what->body_len > SHARED_REQUEST)
		return false;
	return what->max_active == 0 && !postgres_place_is_full(p) &&
	    postgres_place_guess(p);
}

static void
reserve_send_simple(struct pg *pg, const struct reserve *r)
{
	const struct postgres_place *p = &r->place;
	const struct store_reservation *what = p->what;
	const struct store_identity *identity = &what->identity;
	const struct store_lease *lease = r->lease;

	pg_send(pg, PG_QUERY_RESERVE_SIMPLE, "isibsssiibiu?i?izztisusu",
	    lease->id, what->peer, what->caller, p->digest, sizeof(p->digest),
	    identity->key, identity->path, lease->token, p->store->owner,
	    what->lease, what->fingerprint, (size_t)FINGERPRINT_LEN,
	    p->fingerprint_spec, lease->downstream,
	    what->on_crash == CONF_CRASH_RESUME, what->retention,
	    what->on_expired == CONF_EXPIRED_GONE, rows_expired_retention(what),
	    rows_lock(what->attempt), rows_lock_file(what->attempt),
	    r->resource, (int64_t)what->max_open, identity->scope, what->cookie,
	    what->method, what->instance);
}

static void
reserve_send_shared(struct pg *pg, void *arg)
{
	struct reserve *r = arg;

	/* Else the guess is of a store that went back. */
	r->sent = r->place.forgotten == r->place.store->forgotten &&
	    postgres_place_may_begin_by(pg) == RC_OK;
	if (!r->sent)
		return;
	if (r->place.keep)
		reserve_send(pg, r);
	else
		reserve_send_simple(pg, r);
	if (r->place.draws)
		postgres_place_draw(pg);
}

static enum rc
reserve_read_shared(struct pg *pg, void *arg)
{
	struct reserve *r = arg;
	enum rc rc;

	if (!r->sent)
		return RC_LOST;
	rc = r->place.keep ? reserve_read(r, pg)
			   : pg_one(pg, "m", &r->place.now);
	/* A limit is for keys that are not there: that must be looked at. */
	if (rc == RC_NOTFOUND || rc == RC_EXISTS || rc == RC_LOST) {
		atomic_store(&r->place.store->absent, 0);
		rc = RC_LOST;
	}
	if (r->place.draws)
		(void)postgres_place_drawn(&r->place, pg);
	return rc;
}

/*
 * Reserves a key that has no record, together with other operations.
 * RC_LOST: that must be tried alone.
 */
static enum rc
reserve_share(struct reserve *r)
{
	struct txn_op op = { .send = reserve_send_shared,
		.read = reserve_read_shared,
		.arg = r };
	struct postgres_place *p = &r->place;
	enum txn_shared how;
	enum rc rc;

	p->decision = DECIDE_RUN;
	reserve_tokens(r);
	if ((rc = reserve_lease(r)) != RC_OK)
		return rc;
	rc = postgres_share(p->store, TXN_WRITE, &op, &how);
	if (how == TXN_SHARED_FAILED ||
	    (how == TXN_SHARED_DONE && (rc == RC_OK || rc == RC_LOST)))
		return rc;
	if (how != TXN_SHARED_ALONE)
		r->unread = *r->lease;
	/* The connection may have been lost. */
	p->looked = true;
	return RC_LOST;
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
	*decision = DECIDE_BUSY;
	if (what->unseen && atomic_load(&s->absent) < EXPECTED)
		return RC_OK;
	if ((rc = postgres_place_may_begin(s, what->identity.path)) != RC_OK)
		return what->unseen ? RC_OK : rc;
	FAULT(OP_ASKED);
	rc = postgres_place_init(&r.place, s, what, what->reconcile_delay != 0);
	if (rc == RC_OK)
		rc = reserve_may_share(&r) ? reserve_share(&r) : RC_LOST;
	if (rc == RC_LOST && what->unseen && r.unread.id == 0)
		rc = reserve_not_unseen(&r);
	if (rc == RC_LOST)
		rc = postgres_write(s, reserve_run, &r);
	postgres_place_remember_result(s, rc);
	if (rc == RC_OK)
		postgres_place_remember(&r.place);
	/* The group took the place, and this caller does not use it. */
	if (rc != RC_OK && rc != RC_EXISTS && r.unread.id != 0)
		postgres_keeper_release(s, &r.unread, what->retention, -1);
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

/* --- a trial -------------------------------------------------------------- */

struct trial {
	struct reserve reserve;
	char *why;
	size_t size;
};

/* RC_EXISTS: it would succeed. */
static enum rc
trial_run(struct pg *pg, void *arg)
{
	struct trial *t = arg;
	struct reserve *r = &t->reserve;
	enum rc rc = reserve_run(pg, r);

	if (rc == RC_OK) {
		pg_send(pg, PG_QUERY_FINISH_UNKNOWN, "is?s", r->lease->id,
		    r->lease->token, true, "trial");
		if ((rc = pg_sync(pg)) == RC_OK)
			rc = pg_done(pg);
	}
	if (pg_failure(pg) != PG_NONE)
		snprintf(t->why, t->size, "%s", pg_message(pg));
	return rc == RC_OK ? RC_EXISTS : rc;
}

enum rc
postgres_reserve_try(struct store *s, char *why, size_t size)
{
	char key[RECORD_UUID_LEN + 1];
	const struct store_reservation what = {
		.identity = { "", "/", key },
		.fingerprint_spec = "none",
		.reconcile_delay = 1,
		.environment = "",
		.environment_len = 1,
		.body = "",
		.resource = true,
	};
	struct store_lease lease = { 0 };
	struct trial t = { .reserve.lease = &lease, .why = why, .size = size };
	struct record found = { 0 };
	enum rc rc;

	*why = '\0';
	uuid_random(key);
	rc = postgres_place_init(&t.reserve.place, s, &what, true);
	if (rc == RC_OK)
		rc = postgres_touch(s, trial_run, &t);
	if (*why == '\0')
		snprintf(why, size, "%s", rc_text(rc));
	postgres_place_end(&t.reserve.place, rc, &found);
	return rc == RC_EXISTS ? RC_OK : rc;
}
