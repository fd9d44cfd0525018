/*
 * Outcomes: see store_outcome.h and postgres_impl.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "postgres_impl.h"

bool
postgres_outcome_is_final(enum rc rc)
{
	return rc == RC_OK || rc == RC_LOST || rc == RC_INVALID;
}

/* --- in a group ----------------------------------------------------------- */

struct finish {
	struct postgres_outcome *outcome;
	struct postgres_tx tx;
	enum rc rc; /* of store_outcome_take() */
};

static void
finish_ask(struct pg *pg, void *arg)
{
	struct finish *f = arg;
	const struct outcome_change *change = &f->outcome->change;

	postgres_tx_begin(&f->tx, change->outcome.store, pg);
	f->tx.unlocked = f->tx.asked = f->tx.timed = true;
	store_outcome_ask(&f->tx.tx, change);
}

static void
finish_send(struct pg *pg, void *arg, struct txn_group *group)
{
	struct finish *f = arg;

	(void)pg;
	postgres_tx_time(&f->tx, group->now, group->clock);
	f->rc = store_outcome_take(&f->tx.tx, &f->outcome->change);
}

static enum rc
finish_read(struct pg *pg, void *arg)
{
	struct finish *f = arg;
	const enum rc rc = postgres_tx_end(&f->tx);

	(void)pg;
	return f->rc == RC_OK ? rc : f->rc;
}

/* Reads the results of a group that has taken place; RC_LOST: the key has
 * another answer, or none. */
static enum rc
finish_read_again(struct pg *pg, struct postgres_outcome *o)
{
	struct rows_answer c;
	bool is_ours;
	enum rc rc;

	rows_answer(&o->change.outcome, &c);
	pg_send(pg, PG_QUERY_FINISHED, "i?dtoo", o->change.id, c.keep, c.status,
	    c.reason, c.fields, c.nfields, c.body, c.nbody);
	rc = pg_one(pg, "?i", &is_ours, &o->change.done.expires_at);
	if (rc == RC_NOTFOUND) /* it is past already */
		return RC_OK;
	return rc == RC_OK && !is_ours ? RC_LOST : rc;
}

/* --- a try ---------------------------------------------------------------- */

/* *alone: it is to be tried alone now. */
static enum rc
outcome_share(struct store *s, struct postgres_outcome *o, bool *alone)
{
	struct finish f = { .outcome = o };
	struct txn_op op = { .ask = finish_ask,
		.send = finish_send,
		.read = finish_read,
		.arg = &f };
	enum txn_shared how;
	enum rc rc = postgres_share(s, TXN_WRITE, &op, &how);

	o->shares = false;
	o->unread = how == TXN_SHARED_UNREAD;
	*alone = o->unread || how == TXN_SHARED_ALONE ||
	    (how == TXN_SHARED_DONE && rc != RC_OK);
	o->did = f.tx.tx.did;
	return rc;
}

static enum rc
run_outcome(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;
	enum rc rc = RC_LOST;

	if (o->unread)
		rc = finish_read_again(pg, o);
	if (rc != RC_LOST)
		return rc;
	return postgres_tx_run(
	    o->change.outcome.store, pg, o->change.run, &o->change, &o->did);
}

enum rc
postgres_outcome_try(struct store *s, struct postgres_outcome *o)
{
	enum rc rc = RC_OK;
	bool alone = true;

	if (o->shares)
		rc = outcome_share(s, o, &alone);
	if (alone)
		rc = postgres_write(s, run_outcome, o);
	if (rc == RC_FULL &&
	    store_outcome_drop(&o->change.outcome, o->change.id))
		rc = postgres_write(s, run_outcome, o);
	if (rc == RC_PENDING)
		o->change.unsure = true;
	if (rc != RC_OK)
		return rc;
	if (o->change.outcome.requeue >= 0 || s->base.shared ||
	    (o->did & TX_WORK) != 0)
		store_news_made(s->base.news);
	return rc;
}

/* A table that is locked is waited for only shortly, and once. */
static enum rc
held_run(struct pg *pg, void *arg)
{
	const int64_t *id = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_SHORTLY, "");
	pg_send(pg, PG_QUERY_KEY_HELD, "i", *id);
	rc = pg_one(pg, "-");
	if (rc == RC_OK)
		rc = pg_one(pg, "-");
	if (rc == RC_BUSY)
		(void)pg_clear(pg);
	return rc;
}

bool
postgres_outcome_is_held(struct store *s, const struct postgres_outcome *o)
{
	int64_t id = o->change.id;

	return postgres_run(s, TXN_TWICE, held_run, &id) == RC_OK;
}

static void
outcome_count(struct store *s, int change)
{
	lock_take(&s->lock);
	s->failing += change;
	lock_give(&s->lock);
}

enum rc
postgres_outcome_do(struct store *s, struct outcome_change *change,
    struct store_outcome **outcome)
{
	struct postgres_outcome *o = (struct postgres_outcome *)(void *)change;
	const int64_t until = clock_mono() + s->busy_timeout;
	bool counts = false; /* as one that fails */
	int failures = 0;
	enum rc rc;

	if (change->unsure) {
		postgres_keeper_take(s, o);
		*outcome = NULL;
		return RC_PENDING;
	}
	o->unread = o->held = false;
	/* A handler that shares the database may have stored its own answer:
	 * then a group tries in vain. */
	o->shares = !s->base.shared && store_outcome_is_small(change);
	FAULT(OP_ASKED);
	for (;;) {
		rc = postgres_outcome_try(s, o);
		if (postgres_outcome_is_final(rc))
			break;
		o->held = rc == RC_BUSY && postgres_outcome_is_held(s, o);
		if (!o->held && !counts) {
			counts = true;
			outcome_count(s, 1);
		}
		if (rc == RC_PENDING || !txn_pause(++failures, until)) {
			postgres_keeper_take(s, o);
			*outcome = NULL;
			rc = RC_PENDING;
			break;
		}
	}
	if (counts)
		outcome_count(s, -1);
	return rc;
}
