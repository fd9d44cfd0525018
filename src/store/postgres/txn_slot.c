/*
 * The slots of a pool: their connections and their numbers.  Invariants:
 *
 *   1. A slot's row has seq or, while the slot is pending, perhaps seq + 1,
 *      because the transaction took place, or seq + 2, because it never will.
 *      Less means that the store went back.
 *   2. A transaction holds its slot's row locked from its first statement to
 *      its end, and begins only if it has seq + 1 there.  A lookup changes the
 *      row from seq to seq + 2.  So the number that it reads is final, even if
 *      the statements of a group come to the server later.
 *   3. That lookup commits, too, and its COMMIT waits for the standby like any
 *      other.  So a transaction that only the primary has is not found to have
 *      taken place.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "txn_impl.h"

/* --- the slots ------------------------------------------------------------ */

/* A free slot: connected, if there is one, and not pending. */
static struct txn_slot *
choose_slot(struct txn_pool *pool)
{
	struct txn_slot *best = NULL, *s;
	int score, highest = -1;

	for (int i = 0; i < pool->nslots; i++) {
		s = &pool->slot[i];
		if (s->taken)
			continue;
		score = s->pending ? 0 : s->pg != NULL ? 2 : 1;
		if (score > highest) {
			best = s;
			highest = score;
		}
	}
	return best;
}

enum rc
txn_slot_take(struct txn_pool *pool, int64_t until, struct txn_slot **out)
{
	bool more = true;

	lock_take(&pool->lock);
	while ((*out = choose_slot(pool)) == NULL && more)
		more = lock_wait(&pool->lock, &pool->given, until);
	if (*out != NULL)
		(*out)->taken = true;
	lock_give(&pool->lock);
	return *out != NULL ? RC_OK : RC_BUSY;
}

void
txn_slot_give(struct txn_pool *pool, struct txn_slot *s)
{
	lock_take(&pool->lock);
	s->taken = false;
	(void)pthread_cond_signal(&pool->given);
	lock_give(&pool->lock);
}

/* --- the store that went back --------------------------------------------- */

enum rc
txn_slot_went_back(struct txn_pool *pool, const struct txn_slot *s)
{
	if (!atomic_exchange(&pool->went_back, true))
		log_event(LOG_ERROR, "store-went-back", NULL,
		    LOG_S("database", txn_database(pool)),
		    LOG_S("message", TXN_BACK), LOG_I("slot", s->number),
		    LOG_I("confirmed", s->seq));
	return RC_WENT_BACK;
}

void
txn_slot_check(const struct txn_pool *pool, struct pg *pg)
{
	if (pool->epoch != 0)
		pg_send_quietly(
		    pg, PG_QUERY_SESSION_CHECK, "ii", pool->owner, pool->epoch);
}

void
txn_slot_stays(const struct txn_pool *pool, struct pg *pg)
{
	if (pool->epoch != 0)
		pg_send_quietly(
		    pg, PG_QUERY_SESSION_STAYS, "i", (int64_t)pool->table);
}

/* Whether the process's row is the one that it made, and each slot's row has at
 * least the number that was confirmed. */
static enum rc
compare_slots(struct txn_pool *pool, struct txn_slot *s)
{
	bool there;
	enum rc rc = RC_OK;

	txn_slot_check(pool, s->pg);
	for (int i = 0; i < pool->nslots; i++)
		pg_send(s->pg, PG_QUERY_SESSION_THERE, "idi", pool->owner, i,
		    (int64_t)pool->slot[i].seq);
	for (int i = 0; i < pool->nslots && rc == RC_OK; i++) {
		rc = pg_one(s->pg, "?", &there);
		if (rc == RC_OK && !there)
			rc = txn_slot_went_back(pool, &pool->slot[i]);
	}
	return rc == RC_WENT_BACK ? txn_slot_went_back(pool, s) : rc;
}

/* --- connecting ----------------------------------------------------------- */

void
txn_slot_disconnect(struct txn_pool *pool, struct txn_slot *s)
{
	if (s->pg == NULL)
		return;
	pg_close(s->pg);
	s->pg = NULL;
	atomic_fetch_sub(&pool->open, 1);
}

void
txn_slot_fail(struct txn_pool *pool, struct txn_slot *s)
{
	if (s->pg != NULL && pg_failure(s->pg) != PG_NONE)
		txn_set_message(pool, pg_message(s->pg));
	txn_slot_disconnect(pool, s);
}

/* An outage is logged once; the caller of txn_open() tells of one before the
 * first connection. */
static void
connect_failed(struct txn_pool *pool, const char *message)
{
	txn_set_message(pool, message);
	if (!pool->reached || !atomic_exchange(&pool->connected, false))
		return;
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", txn_database(pool)), LOG_S("doing", "connect"),
	    LOG_S("message", message));
}

/* --- settings that a commit relies on ------------------------------------- */

enum rc
txn_server_read(struct pg *pg, void *server)
{
	static const char *const off[] = { NULL, "fsync", "full_page_writes",
		"synchronous_commit" };
	struct txn_server *c = server;
	int n;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_SERVER, "");
	rc = pg_one(pg, "iiidf?m", &c->timeline, &c->cluster, &c->version, &n,
	    c->synchronous, sizeof(c->synchronous), &c->standby, &c->now);
	if (rc != RC_OK)
		return rc;
	assert(n < (int)(sizeof(off) / sizeof(off[0])));
	c->off = off[n];
	pg_server_place(pg, c->place, sizeof(c->place));
	return RC_OK;
}

const char *
txn_unsafe(const struct txn_pool *pool)
{
	return atomic_load(&pool->unsafe);
}

void
txn_unsafe_text(
    const struct txn_pool *pool, const char *setting, char *out, size_t size)
{
	snprintf(out, size,
	    "database %s: the server's setting %s is off, so a commit may be "
	    "lost: turn it on, or set durability = normal",
	    txn_database(pool), setting);
}

/* Once until a new connection has them on; the caller of txn_open() tells of
 * the first connection. */
void
txn_note_setting(struct txn_pool *pool, const char *off)
{
	const char *before =
	    atomic_exchange(&pool->unsafe, pool->durable ? off : NULL);
	char why[512];

	if (off == NULL || before != NULL || !pool->durable || !pool->reached)
		return;
	txn_unsafe_text(pool, off, why, sizeof(why));
	log_event(LOG_ERROR, "store-unsafe", NULL, LOG_S("message", why));
}

/* --- a new connection ----------------------------------------------------- */

/*
 * A primary that was frozen or cut off while its standby was promoted takes
 * itself for the primary when it is back.  It lacks commits, and that is no
 * loss: another host has them.  Its timeline is older than the other one's.
 */
static enum rc
check_timeline(struct txn_pool *pool, int64_t timeline)
{
	const int64_t seen = atomic_load(&pool->timeline);
	char message[128];

	if (timeline == 0 || timeline >= seen)
		return RC_OK;
	snprintf(message, sizeof(message),
	    "the server's timeline is %lld, and %lld was seen: a standby has "
	    "taken its place; stop it",
	    (long long)timeline, (long long)seen);
	connect_failed(pool, message);
	pg_target_pass(pool->target);
	return RC_IO;
}

/* Another cluster has a store that was restored from a dump, perhaps while the
 * first one runs. */
static enum rc
compare_server(struct txn_pool *pool, struct txn_slot *s, int64_t *timeline,
    const char **off)
{
	struct txn_server server;
	int64_t seen = 0;
	enum rc rc = txn_server_read(s->pg, &server);

	if (rc != RC_OK)
		return rc;
	if (pool->owner != 0 &&
	    !atomic_compare_exchange_strong(
		&pool->cluster, &seen, server.cluster) &&
	    seen != server.cluster)
		return txn_slot_went_back(pool, s);
	*timeline = server.timeline;
	*off = server.off;
	return check_timeline(pool, *timeline);
}

/* All commits are there. */
static void
note_timeline(struct txn_pool *pool, int64_t timeline)
{
	int64_t seen = atomic_load(&pool->timeline);

	while (seen < timeline &&
	    !atomic_compare_exchange_weak(&pool->timeline, &seen, timeline))
		;
}

/* *refused: a second try would be, too. */
static enum rc
connect_slot(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool *refused)
{
	const char *off = NULL;
	int64_t timeline = 0;
	enum rc rc;

	*refused = false;
	rc = pg_open(&s->pg, pool->target, until + TXN_GRACE);
	if (s->pg == NULL)
		return rc;
	*refused = pg_failure(s->pg) == PG_REFUSED;
	atomic_fetch_add(&pool->open, 1);
	pg_set_quiet(s->pg, true);
	if (rc == RC_OK)
		rc = txn_session_begin(pool, s->pg);
	if (rc == RC_OK)
		rc = compare_server(pool, s, &timeline, &off);
	if (rc == RC_OK && pool->owner != 0)
		rc = compare_slots(pool, s);
	pg_set_quiet(s->pg, false);
	if (rc != RC_OK) {
		if (pg_failure(s->pg) != PG_NONE)
			connect_failed(pool, pg_message(s->pg));
		txn_slot_fail(pool, s);
		return rc;
	}
	s->timeline = timeline;
	note_timeline(pool, timeline);
	txn_note_setting(pool, off);
	pool->reached = true;
	if (!atomic_exchange(&pool->connected, true))
		log_event(LOG_WARN, "store-connected", NULL,
		    LOG_S("database", txn_database(pool)));
	return RC_OK;
}

static enum rc
have_connection(struct txn_pool *pool, struct txn_slot *s, int64_t until)
{
	int failures = 0;
	bool refused;
	enum rc rc;

	/* The server may live on, with old data: see check_timeline().  The
	 * settings of a role reach new connections only. */
	if (s->pg != NULL &&
	    (s->timeline < atomic_load(&pool->timeline) ||
		txn_unsafe(pool) != NULL))
		txn_slot_disconnect(pool, s);
	if (s->pg != NULL) {
		pg_set_deadline(s->pg, until + TXN_GRACE);
		if (pg_clear(s->pg) != RC_OK)
			txn_slot_fail(pool, s);
	}
	while (s->pg == NULL) {
		rc = connect_slot(pool, s, until, &refused);
		if (rc == RC_WENT_BACK || rc == RC_NOMEM || refused)
			return rc;
		if (rc != RC_OK && !txn_pause(++failures, until))
			return rc;
	}
	return RC_OK;
}

/* --- the slot's number ---------------------------------------------------- */

/* Makes the slot's row, and the process's with the first one.  Done twice it
 * does no harm, and after a COMMIT with a WARNING the second one is what
 * confirms the rows.  It passes a fault point of its own: whether a write needs
 * another slot depends on the other threads, and its commits could not be
 * counted. */
static enum rc
make_row(struct txn_pool *pool, struct txn_slot *s)
{
	int64_t epoch = 0, table = 0;
	enum rc rc;

	pg_begin(s->pg);
	txn_slot_check(pool, s->pg);
	if (pool->epoch == 0)
		pg_send_quietly(s->pg, PG_QUERY_SESSION_NEW, "id", pool->owner,
		    TXN_PROCESS);
	pg_send_quietly(
	    s->pg, PG_QUERY_SESSION_NEW, "id", pool->owner, s->number);
	pg_send(s->pg, PG_QUERY_SESSION_EPOCH, "i", pool->owner);
	rc = pg_one(s->pg, "ii", &epoch, &table);
	if (rc == RC_OK) {
		txn_slot_stays(pool, s->pg);
		pg_commit_send(s->pg);
		(void)pg_sync(s->pg);
		rc = pg_commit_result(s->pg);
		FAULT(SESSION_MADE);
	}
	if (rc == RC_OK) {
		pool->table = table;
		pool->epoch = epoch;
		s->seq = 0;
		return rc;
	}
	if (pg_failure(s->pg) == PG_WENT_BACK)
		rc = txn_slot_went_back(pool, s);
	txn_slot_fail(pool, s);
	return rc;
}

enum rc
txn_slot_ready(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool session)
{
	int failures = 0;
	bool took_place;
	enum rc rc;

	if (s->pending &&
	    (rc = txn_slot_settle(pool, s, until, &took_place)) != RC_OK)
		return rc;
	do
		rc = have_connection(pool, s, until);
	while (rc == RC_OK && session && s->seq == TXN_NO_ROW &&
	    (rc = make_row(pool, s)) != RC_OK && rc != RC_WENT_BACK &&
	    txn_pause(++failures, until));
	return rc;
}

static enum rc
read_seq(struct txn_pool *pool, struct txn_slot *s, int64_t *seq)
{
	enum rc rc;

	pg_begin(s->pg);
	txn_slot_check(pool, s->pg);
	pg_send_quietly(s->pg, PG_QUERY_SESSION_VOID, "idi", pool->owner,
	    s->number, s->seq);
	pg_send(
	    s->pg, PG_QUERY_SESSION_SEQ, "idi", pool->owner, s->number, s->seq);
	rc = pg_one(s->pg, "i", seq);
	if (rc == RC_OK)
		return pg_commit(s->pg);
	if (rc != RC_NOTFOUND && rc != RC_WENT_BACK)
		return rc;
	pg_rollback(s->pg);
	return txn_slot_went_back(pool, s);
}

enum rc
txn_slot_settle(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool *took_place)
{
	const int64_t confirmed = s->seq;
	int failures = 0;
	int64_t seq = 0;
	enum rc rc;

	assert(s->pending);
	*took_place = false;
	do {
		rc = have_connection(pool, s, until);
		if (rc == RC_OK)
			rc = read_seq(pool, s, &seq);
		if (rc != RC_OK)
			txn_slot_fail(pool, s);
	} while (
	    rc != RC_OK && rc != RC_WENT_BACK && txn_pause(++failures, until));
	if (rc != RC_OK)
		return rc;
	FAULT(COMMIT_FOUND);
	*took_place = seq == confirmed + 1;
	s->seq = seq;
	s->pending = false;
	return RC_OK;
}

enum rc
txn_slot_look_up(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool *done)
{
	const int64_t least = clock_mono() + TXN_GRACE;
	enum rc rc;

	txn_slot_fail(pool, s);
	/* A server that confirms nothing may have been replaced. */
	pg_target_pass(pool->target);
	rc = txn_slot_settle(pool, s, until > least ? until : least, done);
	return rc == RC_OK || rc == RC_WENT_BACK ? rc : RC_PENDING;
}
