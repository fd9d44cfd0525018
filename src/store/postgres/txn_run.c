/*
 * Transactions: each is run until it has taken place once, or has failed.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backoff.h"
#include "clock.h"
#include "fault.h"
#include "pg_impl.h"
#include "txn_impl.h"
#include "uuid.h"

/* How often a thread that waits for all slots looks at them (ms). */
#define RENEW_LOOK 50

/* Tries of a transaction for which others were faster. */
#define TRIES_MAX 10

/* Groups of operations at a time, each in a connection: while one waits for its
 * commit, or for the network, the server works on another. */
#define GROUPS 8

/* Pauses between tries (ms). */
#define PAUSE_FIRST 10
#define PAUSE_LAST  500

enum rc
txn_open(struct txn_pool **out, const struct txn_options *o, char *err,
    size_t errsize)
{
	const unsigned n = o->connections > 0 ? o->connections : 1;
	struct txn_pool *pool;
	enum rc rc;

	*out = NULL;
	pool = calloc(1, sizeof(*pool) + n * sizeof(pool->slot[0]));
	if (pool == NULL)
		return RC_NOMEM;
	rc = pg_target_parse(&pool->target, o->database,
	    o->busy_timeout + TXN_GRACE, err, errsize);
	if (rc != RC_OK) {
		free(pool);
		return rc;
	}
	pool->busy_timeout = o->busy_timeout;
	pool->durable = o->durable;
	pool->connected = true; /* so that the first outage is logged */
	pool->nslots = (int)n;
	for (int i = 0; i < pool->nslots; i++) {
		pool->slot[i].number = i;
		pool->slot[i].seq = TXN_NO_ROW;
	}
	lock_init(&pool->lock, LOCK_STORE);
	lock_cond_init(&pool->given);
	pool->writes.most = pool->looks.most = GROUPS;
	*out = pool;
	return RC_OK;
}

void
txn_close(struct txn_pool *pool)
{
	if (pool == NULL)
		return;
	for (int i = 0; i < pool->nslots; i++) {
		assert(!pool->slot[i].taken);
		txn_slot_disconnect(pool, &pool->slot[i]);
	}
	pg_target_free(pool->target);
	(void)pthread_cond_destroy(&pool->given);
	lock_destroy(&pool->lock);
	free(pool);
}

void
txn_set_message(struct txn_pool *pool, const char *message)
{
	lock_take(&pool->lock);
	(void)snprintf(pool->message, sizeof(pool->message), "%s", message);
	lock_give(&pool->lock);
}

void
txn_message(struct txn_pool *pool, char *out, size_t size)
{
	lock_take(&pool->lock);
	(void)snprintf(out, size, "%s", pool->message);
	lock_give(&pool->lock);
}

const char *
txn_database(const struct txn_pool *pool)
{
	return pg_target_name(pool->target);
}

int64_t
txn_timeline(const struct txn_pool *pool)
{
	return pool->timeline;
}

/* No slot is taken. */
static void
begin_anew(struct txn_pool *pool, int64_t owner)
{
	pool->owner = owner;
	pool->epoch = 0;
	pool->went_back = pool->other = false;
	pool->timeline = pool->cluster = 0;
	for (int i = 0; i < pool->nslots; i++) {
		assert(!pool->slot[i].taken);
		txn_slot_disconnect(pool, &pool->slot[i]);
		pool->slot[i].seq = TXN_NO_ROW;
		pool->slot[i].pending = false;
	}
}

void
txn_pin(struct txn_pool *pool, const char *schema, const void *secret)
{
	snprintf(pool->schema, sizeof(pool->schema), "%s", schema);
	pool->compares = secret != NULL;
	if (secret != NULL)
		memcpy(pool->secret, secret, sizeof(pool->secret));
	begin_anew(pool, pool->owner);
}

void
txn_set_owner(struct txn_pool *pool, int64_t owner)
{
	if (pool->owner != 0 || pool->went_back)
		begin_anew(pool, owner);
	else
		pool->owner = owner; /* no slot has a row yet */
}

int64_t
txn_owner(const struct txn_pool *pool)
{
	return pool->owner;
}

static bool
any_taken(const struct txn_pool *pool)
{
	for (int i = 0; i < pool->nslots; i++)
		if (pool->slot[i].taken)
			return true;
	return false;
}

enum rc
txn_renew(struct txn_pool *pool, int64_t owner)
{
	const int64_t until = clock_mono() + pool->busy_timeout + TXN_GRACE;
	int64_t now;
	bool taken;

	lock_take(&pool->lock);
	/* The signal that a slot is free may wake another thread. */
	while ((taken = any_taken(pool)) && (now = clock_mono()) < until)
		(void)lock_wait(&pool->lock, &pool->given, now + RENEW_LOOK);
	if (!taken)
		begin_anew(pool, owner);
	lock_give(&pool->lock);
	return taken ? RC_BUSY : RC_OK;
}

bool
txn_pause(int failures, int64_t until)
{
	const int64_t pause =
	    backoff_pause(PAUSE_FIRST, failures, PAUSE_LAST, uuid_bits());
	const struct timespec ts = { (time_t)(pause / 1000),
		(long)(pause % 1000) * 1000000 };

	if (clock_mono() + pause > until)
		return false;
	(void)nanosleep(&ts, NULL);
	return true;
}

/* --- one transaction ------------------------------------------------------ */

static void
begin_txn(
    const struct txn_pool *pool, struct txn_slot *s, const struct txn_call *c)
{
	switch (c->kind) {
	case TXN_LOOK:
		txn_slot_check(pool, s->pg);
		break;
	case TXN_READ:
		pg_begin_read(s->pg);
		txn_slot_check(pool, s->pg);
		break;
	case TXN_WRITE:
		pg_begin(s->pg);
		if (c->shared)
			pg_send(s->pg, PG_QUERY_SESSION_SHARE, "iidi",
			    pool->owner, pool->epoch, s->number, s->seq + 1);
		else
			pg_send_quietly(s->pg, PG_QUERY_SESSION_NEXT, "iidi",
			    pool->owner, pool->epoch, s->number, s->seq + 1);
		break;
	case TXN_TWICE:
		pg_begin(s->pg);
		break;
	}
}

static enum rc
commit_write(struct txn_pool *pool, struct txn_slot *s, bool was_sent)
{
	enum rc rc;

	if (!was_sent) {
		txn_slot_stays(pool, s->pg);
		return pg_commit(s->pg);
	}
	rc = pg_commit_result(s->pg);
	FAULT(COMMIT_DONE);
	return rc;
}

static enum rc
try_once(struct txn_pool *pool, struct txn_slot *s, const struct txn_call *c)
{
	const bool sent = c->shared && c->kind == TXN_WRITE;
	enum rc rc;

	pg_set_deadline(s->pg, c->until + TXN_GRACE);
	begin_txn(pool, s, c);
	rc = c->body(s->pg, c->arg);
	if (rc == RC_OK && pg_failure(s->pg) != PG_NONE)
		rc = RC_IO; /* a failure that the body has passed over */
	if (c->kind == TXN_LOOK || (pg_failure(s->pg) == PG_LOST && !sent))
		return rc;
	if (rc == RC_OK && c->kind == TXN_TWICE)
		return pg_commit(s->pg);
	if (rc == RC_OK && c->kind == TXN_WRITE &&
	    (rc = commit_write(pool, s, sent)) == RC_OK) {
		s->seq++;
		return rc;
	}
	if (pg_failure(s->pg) == PG_LOST) {
		s->pending = true;
		return rc;
	}
	pg_rollback(s->pg);
	/* What lost leaves no lock that others step over. */
	if (rc == RC_LOST)
		(void)pg_clear(s->pg);
	return rc;
}

static enum rc
run_call(struct txn_pool *pool, struct txn_slot *s, const struct txn_call *c,
    enum txn_shared *how)
{
	enum pg_failure failure;
	int failures = 0, collisions = 0;
	bool done = false;
	enum rc rc;

	*how = TXN_SHARED_FAILED;
	do {
		rc = txn_slot_ready(pool, s, c->until, c->kind == TXN_WRITE);
		if (rc != RC_OK)
			return rc;
		pg_set_quiet(s->pg, c->kind == TXN_TWICE);
		rc = try_once(pool, s, c);
		pg_set_quiet(s->pg, false);
		if (s->pending) {
			rc = txn_slot_look_up(pool, s, c->until, &done);
			if (done)
				*how = TXN_SHARED_DONE;
			if (rc != RC_OK || done)
				return rc;
			rc = RC_IO;
			continue;
		}
		failure = pg_failure(s->pg);
		if (failure == PG_WENT_BACK)
			return txn_slot_went_back(pool, s);
		if (rc == RC_OK)
			*how = TXN_SHARED_DONE;
		if (failure == PG_LOST)
			txn_slot_fail(pool, s);
		else if (rc == RC_OK ||
		    (!c->shared &&
			(failure != PG_AGAIN || ++collisions == TRIES_MAX)))
			return rc;
	} while (!c->shared && txn_pause(++failures, c->until));
	*how = TXN_SHARED_ALONE;
	return rc;
}

enum rc
txn_call_run(struct txn_pool *pool, struct txn_call *c, enum txn_shared *how)
{
	struct txn_slot *s;
	enum rc rc;

	*how = TXN_SHARED_FAILED;
	if (pool->went_back)
		return RC_WENT_BACK;
	rc = txn_slot_take(pool, c->until, &s);
	if (rc != RC_OK)
		return rc;
	c->took = clock_mono();
	rc = run_call(pool, s, c, how);
	c->took = clock_mono() - c->took;
	if (rc != RC_OK && s->pg != NULL)
		txn_set_message(pool, pg_message(s->pg));
	txn_slot_give(pool, s);
	return rc;
}

enum rc
txn_run(struct txn_pool *pool, enum txn_kind kind, txn_body *body, void *arg)
{
	struct txn_call call = { .kind = kind,
		.body = body,
		.arg = arg,
		.until = clock_mono() + pool->busy_timeout };
	enum txn_shared how;

	assert(kind != TXN_WRITE || pool->owner != 0);
	return txn_call_run(pool, &call, &how);
}

enum rc
txn_apart(struct txn_pool *pool, txn_body *body, void *arg)
{
	struct pg *pg;
	enum rc rc;

	rc = pg_open(
	    &pg, pool->target, clock_mono() + pool->busy_timeout + TXN_GRACE);
	if (rc == RC_OK && pool->schema[0] != '\0')
		rc = txn_session_begin(pool, pg);
	if (rc == RC_OK)
		rc = body(pg, arg);
	if (pg != NULL)
		pg_close(pg);
	return rc;
}

/* --- maintenance ---------------------------------------------------------- */

/* The next slot that is pending; NULL: there is none. */
static struct txn_slot *
run_pending(struct txn_pool *pool, int first)
{
	struct txn_slot *s, *found = NULL;

	lock_take(&pool->lock);
	for (int i = first; i < pool->nslots && found == NULL; i++) {
		s = &pool->slot[i];
		if (!s->taken && s->pending)
			found = s;
	}
	if (found != NULL)
		found->taken = true;
	lock_give(&pool->lock);
	return found;
}

void
txn_settle(struct txn_pool *pool)
{
	struct txn_slot *s;
	bool took_place;

	for (int i = 0; (s = run_pending(pool, i)) != NULL; i = s->number + 1) {
		(void)txn_slot_settle(
		    pool, s, clock_mono() + pool->busy_timeout, &took_place);
		txn_slot_give(pool, s);
	}
}

void
txn_health(struct txn_pool *pool, struct txn_health *h)
{
	h->connected = pool->connected;
	h->went_back = pool->went_back;
	h->other = pool->other;
	h->connections = pool->open;
	h->pending = 0;
	for (int i = 0; i < pool->nslots; i++)
		h->pending += pool->slot[i].pending;
}

/* --- a new connection ----------------------------------------------------- */

static enum rc
compare_secret(struct txn_pool *pool, struct pg *pg)
{
	const void *secret = NULL;
	size_t n = 0;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_SECRET, "");
	rc = pg_one(pg, "b", &secret, &n);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	pool->other = rc != RC_OK || n != sizeof(pool->secret) ||
	    memcmp(secret, pool->secret, n) != 0;
	return pool->other ? pg_lost(pg, RC_IO, "connect", TXN_OTHER) : RC_OK;
}

enum rc
txn_session_begin(struct txn_pool *pool, struct pg *pg)
{
	const char *schema = pool->schema[0] != '\0' ? pool->schema : NULL;
	enum rc rc;

	rc = pg_set_session(pg, pool->busy_timeout, TXN_GRACE, schema);
	return rc == RC_OK && pool->compares ? compare_secret(pool, pg) : rc;
}
