/*
 * The outbox: effects that are due, and the tries that deliver them.
 *
 * The invariants are those of sqlite/store_effect.c.  What takes the turn from
 * an effect and what passes it on are two statements of one transaction: the
 * second one sees an effect that a handler committed while the first one waited
 * for the handler's transaction (see once_outbox() in schema.sql).
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "fault.h"
#include "postgres_outcome.h"
#include "postgres_place.h"
#include "postgres_row.h"
#include "store_check.h"
#include "postgres_effect.h"

/* The payload is read in parts of this size (bytes). */
#define PART 1048576

/* --- which is next -------------------------------------------------------- */

struct next {
	const struct store *s;
	const char *topic;
	int64_t skip; /* effects that are left to other processes */
	struct effect *effect;
	int64_t now;
};

static const struct row_member now_of[] = {
	ROW_MEMBER('m', next, now),
};

static enum rc
run_effect_next(struct pg *pg, void *arg)
{
	struct next *n = arg;
	enum rc rc;

	memset(n->effect, 0, sizeof(*n->effect));
	pg_send(pg, PG_QUERY_EFFECT_NEXT, "si", n->topic, n->skip);
	if ((rc = pg_sync(pg)) == RC_OK && (rc = pg_result(pg)) == RC_OK)
		rc = postgres_row_next_effect(n->s, pg, n->effect);
	if (rc == RC_OK && (rc = pg_members(pg, now_of, 1, n)) != RC_OK)
		effect_free(n->effect);
	return rc;
}

/* Steps over effects that were lost to other processes: see
 * postgres_job_next(). */
enum rc
postgres_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at)
{
	struct next n = { .s = s, .topic = topic, .effect = effect };
	enum rc rc;

	memset(effect, 0, sizeof(*effect));
	n.skip = atomic_load(&s->effects_lost);
	rc = txn_run(s->pool, TXN_LOOK, run_effect_next, &n);
	if (n.skip > 0 &&
	    (rc == RC_NOTFOUND || (rc == RC_OK && effect->next_at > n.now))) {
		effect_free(effect);
		n.skip = 0;
		atomic_store(&s->effects_lost, 0);
		rc = txn_run(s->pool, TXN_LOOK, run_effect_next, &n);
	}
	*at = rc == RC_OK ? effect->next_at : 0;
	/* The server has the time: here it may be a little earlier. */
	if (*at <= n.now && *at > postgres_now(s))
		*at = postgres_now(s);
	return rc;
}

/* --- payload -------------------------------------------------------------- */

struct payload {
	const struct effect *effect;
	struct spool *spool;
};

/* One part after another, in one state of the database. */
static enum rc
run_payload(struct pg *pg, void *arg)
{
	struct payload *p = arg;
	int64_t length = 0, at = 0;
	const void *data;
	size_t n;
	enum rc rc;

	spool_free(p->spool);
	p->spool = NULL;
	do {
		pg_send(pg, PG_QUERY_EFFECT_PAYLOAD, "iuii", p->effect->id,
		    p->effect->effect_key, at, (int64_t)PART);
		if ((rc = pg_sync(pg)) == RC_OK)
			rc = pg_one(pg, "ib", &length, &data, &n);
		if (rc != RC_OK)
			return rc;
		if (data == NULL) /* it is delivered */
			return RC_CORRUPT;
		if (length == 0)
			return RC_OK;
		if (n == 0)
			return RC_CORRUPT;
		if (p->spool == NULL && (p->spool = spool_new()) == NULL)
			return RC_NOMEM;
		rc = spool_write(p->spool, data, n);
		at += (int64_t)n;
	} while (rc == RC_OK && at < length);
	return rc;
}

enum rc
postgres_effect_payload(
    struct store *s, const struct effect *e, struct spool **payload)
{
	struct payload p = { e, NULL };
	enum rc rc = postgres_read(s, run_payload, &p);

	if (rc != RC_OK) {
		spool_free(p.spool);
		p.spool = NULL;
	}
	*payload = p.spool;
	return rc;
}

/* --- a try ---------------------------------------------------------------- */

struct
try {
	const struct store *s;
	const struct effect *effect;
	const struct effect_end *end;
};

/* One row must change; or returns lost. */
static enum rc
change_one(struct pg *pg, enum rc lost)
{
	int changed;
	enum rc rc;

	if ((rc = pg_update(pg, &changed)) != RC_OK)
		return rc;
	if (changed > 1)
		return RC_CORRUPT;
	return changed == 1 ? RC_OK : lost;
}

static enum rc
run_begin(struct pg *pg, void *arg)
{
	const struct try *t = arg;
	enum rc rc = postgres_place_may_begin_by(pg);

	if (rc != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_EFFECT_BEGIN, "idi", t->effect->id,
	    t->effect->attempts, t->s->owner);
	rc = pg_sync(pg);
	return rc == RC_OK ? change_one(pg, RC_LOST) : rc;
}

/* Takes back a try that was not made. */
static enum rc
run_unbegin(struct pg *pg, void *arg)
{
	const struct postgres_outcome *o = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_EFFECT_AGAIN, "idisi", o->change.id,
	    o->change.attempt, (int64_t)o->change.outcome.store->owner,
	    "it is not known whether its try was recorded", INT64_C(0));
	rc = pg_sync(pg);
	return rc == RC_OK ? change_one(pg, RC_LOST) : rc;
}

enum rc
postgres_effect_begin(struct store *s, struct effect *effect)
{
	struct try t = { s, effect, NULL };
	enum rc rc;

	if (!s->keeper)
		return RC_INVALID;
	if ((rc = postgres_place_may_begin(s, NULL)) != RC_OK)
		return rc;
	rc = postgres_write(s, run_begin, &t);
	if (rc == RC_PENDING) {
		postgres_keeper_undo(
		    s, run_unbegin, effect->id, effect->attempts + 1);
		rc = RC_IO;
	}
	if (rc == RC_LOST)
		atomic_fetch_add(&s->effects_lost, 1);
	else
		atomic_store(&s->effects_lost, 0);
	if (rc == RC_OK)
		effect->attempts++;
	return rc;
}

/* Passes the turn on: the result of a statement that was sent. */
static enum rc
pass_turn(struct pg *pg)
{
	return change_one(pg, RC_OK); /* that effect was the last */
}

static enum rc
run_delivered(struct pg *pg, const struct try *t)
{
	const struct effect *e = t->effect;
	enum rc rc;

	pg_send(pg, PG_QUERY_EFFECT_DELIVERED, "idio", e->id, e->attempts,
	    t->s->owner, t->end->reference, t->end->reference_len);
	pg_send(pg, PG_QUERY_EFFECT_GONE, "i", e->id);
	pg_send(pg, PG_QUERY_EFFECT_TURN, "i", e->key_id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = change_one(pg, RC_LOST);
	if (rc == RC_OK)
		rc = change_one(pg, RC_OK);
	return rc == RC_OK ? pass_turn(pg) : rc;
}

static enum rc
run_dead(struct pg *pg, const struct try *t)
{
	const struct effect *e = t->effect;
	enum rc rc;

	pg_send(pg, PG_QUERY_EFFECT_DEAD, "idis", e->id, e->attempts,
	    t->s->owner, t->end->last_error);
	pg_send(pg, PG_QUERY_EFFECT_TURN, "i", e->key_id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = change_one(pg, RC_LOST);
	return rc == RC_OK ? pass_turn(pg) : rc;
}

/* The effect keeps its turn, unless an earlier effect is pending again. */
static enum rc
run_again(struct pg *pg, const struct try *t)
{
	const struct effect *e = t->effect;
	enum rc rc;

	pg_send(pg, PG_QUERY_EFFECT_AGAIN, "idisi", e->id, e->attempts,
	    t->s->owner, t->end->last_error, t->end->after);
	pg_send(pg, PG_QUERY_EFFECT_EARLIER, "ii", e->key_id, e->id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = change_one(pg, RC_LOST);
	if (rc == RC_OK)
		rc = pg_one(pg, "-");
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	pg_send(pg, PG_QUERY_EFFECT_YIELD, "i", e->id);
	pg_send(pg, PG_QUERY_EFFECT_TURN, "i", e->key_id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = change_one(pg, RC_CORRUPT);
	return rc == RC_OK ? pass_turn(pg) : rc;
}

static enum rc
run_end(struct pg *pg, void *arg)
{
	const struct try *t = arg;

	switch (t->end->state) {
	case EFFECT_PENDING:
		return run_again(pg, t);
	case EFFECT_DELIVERED:
		return run_delivered(pg, t);
	case EFFECT_DEAD_LETTER:
		return run_dead(pg, t);
	case EFFECT_NONE:
		break;
	}
	assert(!"no end of a try");
	return RC_INVALID;
}

enum rc
postgres_effect_end(
    struct store *s, const struct effect *effect, const struct effect_end *end)
{
	struct try t = { s, effect, end };
	enum rc rc;

	if (end->state == EFFECT_NONE || end->after < 0 ||
	    end->after > STORE_LONGEST)
		return RC_INVALID;
	rc = postgres_write(s, run_end, &t);
	if (rc == RC_OK)
		postgres_news_made(&s->news);
	return rc;
}

/* --- for recover ---------------------------------------------------------- */

/*
 * An effect is delivered at least once, with the same effect key at each try.
 * So it is due again even if its owner is only suspected, and may still be
 * delivering it: that owner may never come back.  If its try succeeds before
 * another one begins, the delivery counts (effect_delivered).
 */
void
postgres_effect_free_send(struct pg *pg, int64_t owner)
{
	pg_send(pg, PG_QUERY_EFFECT_FREE, "is", owner,
	    "oncewrap was lost while it was tried");
}

enum rc
postgres_effect_free_read(struct pg *pg, int *n)
{
	enum rc rc = pg_update(pg, n);

	if (rc == RC_OK && *n > 0)
		FAULT(RECOVER_EFFECTS);
	return rc;
}

/* --- for operators -------------------------------------------------------- */

/* This effect is due now, or the effect of its key that comes before it. */
static enum rc
run_retry(struct pg *pg, void *arg)
{
	const int64_t *id = arg;
	int64_t key_id;
	enum rc rc;

	pg_send_quietly(pg, PG_QUERY_EFFECT_TURN_LOCK, "i", *id);
	pg_send(pg, PG_QUERY_EFFECT_RETRY, "i", *id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i", &key_id);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	pg_send(pg, PG_QUERY_EFFECT_BUSY, "i", key_id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "-");
	if (rc != RC_NOTFOUND)
		return rc; /* the end of that try passes the turn on */
	pg_send(pg, PG_QUERY_EFFECT_HALT, "i", key_id);
	pg_send(pg, PG_QUERY_EFFECT_TURN, "i", key_id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_done(pg);
	return rc == RC_OK ? pass_turn(pg) : rc;
}

static enum rc
run_drop(struct pg *pg, void *arg)
{
	const int64_t *id = arg;
	int64_t key_id;
	bool had_turn;
	enum rc rc;

	pg_send_quietly(pg, PG_QUERY_EFFECT_TURN_LOCK, "i", *id);
	pg_send(pg, PG_QUERY_EFFECT_DROP, "i", *id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "iv", &key_id, &had_turn);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	if (!had_turn)
		return RC_OK;
	pg_send(pg, PG_QUERY_EFFECT_TURN, "i", key_id);
	rc = pg_sync(pg);
	return rc == RC_OK ? pass_turn(pg) : rc;
}

static enum rc
effect_change(struct store *s, txn_body *body, int64_t id)
{
	enum rc rc = postgres_write(s, body, &id);

	if (rc == RC_OK)
		postgres_news_made(&s->news);
	return rc;
}

enum rc
postgres_effect_retry(struct store *s, int64_t id)
{
	return effect_change(s, run_retry, id);
}

enum rc
postgres_effect_drop(struct store *s, int64_t id)
{
	return effect_change(s, run_drop, id);
}
