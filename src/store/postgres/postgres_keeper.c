/*
 * The keeper: a thread that moves this process's row in once_owner, sees which
 * rows of other processes move, and records the outcomes that their callers
 * have left behind.
 */
#include "config.h"

#include <stdlib.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "postgres_impl.h"
#include "thread.h"

/* This process's row moves several times in owner_timeout, and store time at
 * least so often (ms). */
#define BEATS    5
#define BEAT_MAX INT64_C(60000)

/* Between two tries to record outcomes (ms). */
#define RETRY 500

static void
tell_held(const struct postgres_outcome *o)
{
	log_event(LOG_WARN, "key-locked", &o->change.outcome.log,
	    LOG_I("id", o->change.id),
	    LOG_S("message",
		"a transaction in the database, perhaps of the handler, has "
		"locked the key; its outcome is recorded when that ends"));
}

void
postgres_keeper_take(struct store *s, struct postgres_outcome *o)
{
	struct postgres_outcome **at;

	if (o->held)
		tell_held(o);
	lock_take(&s->lock);
	for (at = &s->late; *at != NULL; at = &(*at)->next)
		;
	o->next = NULL;
	*at = o;
	s->nlate++;
	s->nheld += o->held;
	pthread_cond_signal(&s->beat);
	lock_give(&s->lock);
}

/*
 * Whether the COMMIT of that outcome, or of the reservation that it releases,
 * may still take place.  Then a try would not see what it changes.
 */
static bool
is_open(struct store *s, const struct postgres_outcome *o)
{
	struct txn_health health;

	if (!o->change.unsure)
		return false;
	txn_settle(s->pool);
	txn_health(s->pool, &health);
	return health.pending > 0;
}

/* What a try has found: the first COMMIT may have taken place, and then there
 * is nothing to change any more. */
static const char *
result_text(const struct postgres_outcome *o, enum rc rc)
{
	return o->change.unsure && rc == RC_LOST ? "nothing to do"
						 : rc_text(rc);
}

/* The outcome after o, which may be removed then; NULL: there is none. */
static struct postgres_outcome *
late_next(struct store *s, struct postgres_outcome *o, bool remove)
{
	struct postgres_outcome **at, *next;

	lock_take(&s->lock);
	next = o->next;
	if (remove) {
		for (at = &s->late; *at != o; at = &(*at)->next)
			;
		*at = next;
		s->nlate--;
		s->nheld -= o->held;
	}
	lock_give(&s->lock);
	return next;
}

/* A try would wait for the lock, and the others with it. */
static bool
key_is_held(struct store *s, struct postgres_outcome *o)
{
	const bool was = o->held, held = postgres_outcome_is_held(s, o);

	lock_take(&s->lock);
	o->held = held;
	s->nheld += (unsigned)held - (unsigned)was;
	lock_give(&s->lock);
	if (held && !was)
		tell_held(o);
	return held;
}

/* Records the outcomes, until one fails. */
static void
record_late(struct store *s)
{
	struct postgres_outcome *o, *next;
	enum rc rc = RC_OK;
	bool waits;

	lock_take(&s->lock);
	o = s->late;
	lock_give(&s->lock);
	for (; o != NULL; o = next) {
		if (is_open(s, o))
			return;
		waits = o->held && key_is_held(s, o);
		if (!waits) {
			rc = postgres_outcome_try(s, o);
			waits = rc == RC_BUSY && key_is_held(s, o);
		}
		if (waits) {
			next = late_next(s, o, false);
			continue;
		}
		if (!postgres_outcome_is_final(rc))
			return;
		next = late_next(s, o, true);
		log_event(
		    rc == RC_OK || o->change.unsure ? LOG_INFO : LOG_ERROR,
		    "late-settlement", &o->change.outcome.log,
		    LOG_I("id", o->change.id),
		    LOG_S("result", result_text(o, rc)));
		store_outcome_free(&o->change.outcome);
	}
}

static void *
keeper_main(void *arg)
{
	struct store *s = arg;
	const int64_t every = s->owner_timeout / BEATS < BEAT_MAX
	    ? s->owner_timeout / BEATS
	    : BEAT_MAX;
	int64_t next = clock_mono() + every, until;
	char why[512];

	lock_take(&s->lock);
	while (!s->stop) {
		until = clock_mono() + RETRY;
		if (s->late == NULL || next < until)
			until = next;
		(void)lock_wait(&s->lock, &s->beat, until);
		lock_give(&s->lock);
		if (clock_mono() >= next) {
			(void)postgres_owner_beat(s);
			txn_settle(s->pool);
			/* Settings can be changed in open connections. */
			(void)postgres_check_server(s, why, sizeof(why));
			postgres_loss_look(s);
			next = clock_mono() + every;
		}
		record_late(s);
		lock_take(&s->lock);
	}
	lock_give(&s->lock);
	return NULL;
}

enum rc
postgres_keeper_start(struct store *s)
{
	enum rc rc;

	/* The others are watched from now on. */
	s->began = clock_boot();
	if ((rc = postgres_owner_beat(s)) != RC_OK)
		return rc;
	if (thread_start(&s->thread, "keeper", THREAD_STACK, keeper_main, s) !=
	    0)
		return RC_NOMEM;
	s->has_thread = true;
	return RC_OK;
}

void
postgres_keeper_stop(struct store *s)
{
	struct postgres_outcome *o;

	lock_take(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->beat);
	lock_give(&s->lock);
	if (s->has_thread)
		(void)pthread_join(s->thread, NULL);
	/* The last try. */
	if (s->late != NULL)
		record_late(s);
	while ((o = s->late) != NULL) {
		s->late = o->next;
		/* An operator has been told that it is not known. */
		if (s->daemon)
			log_event(LOG_ERROR, "outcome-lost",
			    &o->change.outcome.log, LOG_I("id", o->change.id));
		store_outcome_free(&o->change.outcome);
	}
}

/* --- of a process that is gone ------------------------------------------- */

/* First waits for the end of transactions that a dead process has left to the
 * server: they may commit leases. */
static enum rc
run_remove(struct pg *pg, void *arg)
{
	const int64_t *owner = arg;
	enum rc rc = RC_OK;

	pg_send(pg, PG_QUERY_SESSION_LOCK, "i", *owner);
	pg_send(pg, PG_QUERY_OWNER_DELETE, "i", *owner);
	pg_send(pg, PG_QUERY_SESSION_DELETE, "i", *owner);
	for (int i = 0; i < 3 && rc == RC_OK; i++)
		rc = pg_result(pg);
	return rc;
}

/* Without a session, because it may delete this process's own. */
enum rc
postgres_owner_remove(struct store *s, int64_t owner)
{
	enum rc rc = postgres_run(s, TXN_TWICE, run_remove, &owner);

	return rc == RC_BUSY ? RC_OK : rc; /* later */
}
