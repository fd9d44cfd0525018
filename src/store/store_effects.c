/*
 * The outbox: effects that are due, the tries that deliver them, and what
 * operators change.  A verb that changes an effect reads it and those of its
 * key that the change concerns, a function of effect.h changes them, and
 * each is written.
 *
 * An effect outlives its key until it is delivered, or an operator drops it; a
 * delivered one is deleted with its key.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "fault.h"
#include "spool.h"
#include "store_change.h"
#include "store_outcome.h"

/* The parameters of $effect_was, and what follows them in effect_write. */
#define WAS "isdz"
#define SET "sd?izosi?"

/* --- which is next -------------------------------------------------------- */

struct next {
	struct store_next next; /* first */
	struct store *s;
	const char *topic;
	struct effect *effect;
};

static const struct row_member now_of[] = {
	ROW_MEMBER('m', store_next, now),
};

static enum rc
next_run(struct tx *tx, void *arg)
{
	struct next *n = arg;
	enum rc rc;

	effect_free(n->effect);
	memset(n->effect, 0, sizeof(*n->effect));
	tx_send(tx, TX_EFFECT_NEXT, "si", n->topic, n->next.skip);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_effect(tx, n->effect);
	if (rc == RC_OK && (rc = tx_members(tx, now_of, 1, &n->next)) != RC_OK)
		effect_free(n->effect);
	if (n->next.now < store_now(n->s))
		n->next.now = store_now(n->s);
	n->next.at = n->effect->next_at;
	return rc;
}

enum rc
store_effect_next(
    struct store *s, const char *topic, struct effect *effect, int64_t *at)
{
	struct next n = {
		.next = {
			.body = next_run,
			.lost = &store_base(s)->effects_lost,
		},
		.s = s,
		.topic = topic,
		.effect = effect,
	};
	enum rc rc;

	memset(effect, 0, sizeof(*effect));
	rc = store_next(s, &n.next);
	*at = rc == RC_OK ? effect->next_at : 0;
	/* A server has the time: here it may be a little earlier. */
	if (*at <= n.next.now && *at > store_now(s))
		*at = store_now(s);
	return rc;
}

/* --- payload -------------------------------------------------------------- */

struct payload {
	const struct effect *effect;
	struct spool *spool;
};

static enum rc
payload_run(struct tx *tx, void *arg)
{
	struct payload *p = arg;
	const int64_t id = p->effect->id;
	struct row_bytes row;
	int64_t length;
	enum rc rc;

	spool_free(p->spool);
	p->spool = NULL;
	tx_send(tx, TX_EFFECT_PAYLOAD, "is", id, p->effect->effect_key);
	rc = tx_one(tx, "bm", &row.data, &row.n, &length);
	if (rc != RC_OK) /* not found: it is delivered */
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	return tx_body_read(tx, &row, TX_PAYLOAD_PIECES(id), length, &p->spool);
}

enum rc
store_effect_payload(
    struct store *s, const struct effect *e, struct spool **payload)
{
	struct payload p = { e, NULL };
	enum rc rc = store_tx(s, TX_READ, payload_run, &p);

	if (rc != RC_OK) {
		spool_free(p.spool);
		p.spool = NULL;
	}
	*payload = p.spool;
	return rc;
}

/* --- changes -------------------------------------------------------------- */

enum kind { END, FREE, RETRY, DROP };

struct change {
	enum kind kind;
	int64_t id;
	/* END */
	struct effect_try try;
	const struct effect_end *end;
};

/* The effect that changes, and of the others of its key the first pending one,
 * and one that has the turn and is not first. */
enum which { THIS, FIRST, HOLDER, NROWS };

/* .id is 0: there is none. */
struct rows {
	struct effect is[NROWS];
	struct effect was[NROWS]; /* without what it owns */
};

static void
rows_free(struct rows *r)
{
	for (int i = 0; i < NROWS; i++)
		effect_free(&r->is[i]);
}

static struct effect *
row_or_none(struct rows *r, enum which i)
{
	return r->is[i].id != 0 ? &r->is[i] : NULL;
}

/* The effect of a statement that was sent. */
static enum rc
row_read(struct tx *tx, struct effect *e)
{
	enum rc rc = tx_result(tx);

	if (rc == RC_OK && (rc = tx_effect(tx, e)) == RC_NOTFOUND) {
		e->id = 0;
		rc = RC_OK;
	}
	return rc;
}

/*
 * Reads them, so that no other transaction changes them.  A try has the turn
 * while it lasts.  Before other changes the effect that has the turn is locked:
 * a try of it that ends meanwhile would not see what becomes of this one.  The
 * caller frees the rows in any case.
 */
static enum rc
rows_read(struct tx *tx, const struct change *c, struct rows *r)
{
	const bool by_operator = c->kind == RETRY || c->kind == DROP;
	enum rc rc = RC_OK;

	memset(r, 0, sizeof(*r));
	if (by_operator)
		tx_send(tx, TX_EFFECT_HOLDER, "i", c->id);
	tx_send(tx, TX_EFFECT_READ, "i", c->id);
	tx_send(tx, TX_EFFECT_FIRST, "i", c->id);
	if (by_operator)
		rc = c->kind == RETRY ? row_read(tx, &r->is[HOLDER])
				      : tx_result(tx);
	if (rc == RC_OK)
		rc = row_read(tx, &r->is[THIS]);
	if (rc == RC_OK)
		rc = row_read(tx, &r->is[FIRST]);
	if (r->is[HOLDER].id == r->is[FIRST].id)
		effect_free(&r->is[HOLDER]);
	memcpy(r->was, r->is, sizeof(r->was));
	return rc == RC_OK && r->is[THIS].id == 0 ? RC_LOST : rc;
}

static bool
row_differs(const struct effect *was, const struct effect *is)
{
	return is->state != was->state || is->attempts != was->attempts ||
	    is->has_turn != was->has_turn || is->next_at != was->next_at ||
	    is->owner != was->owner || is->updated_at != was->updated_at;
}

/* EFFECT_NONE: the row is deleted. */
static enum rc
row_write(struct tx *tx, const struct effect *was, const struct effect *e)
{
	const char *state = effect_state_name(was->state);
	const bool delivered = e->state == EFFECT_DELIVERED;
	const bool payload = effect_needs_payload(e);
	enum rc rc;
	int n;

	if (e->state == EFFECT_NONE) {
		tx_send(tx, TX_EFFECT_DELETE, WAS, was->id, state,
		    was->attempts, was->owner);
	} else {
		assert(effect_is_sound(e));
		tx_send(tx, TX_EFFECT_WRITE, WAS SET, was->id, state,
		    was->attempts, was->owner, effect_state_name(e->state),
		    e->attempts, (int)e->has_turn, e->next_at, e->owner,
		    e->reference.data, e->reference.len, e->last_error,
		    e->updated_at, (int)payload);
	}
	if (delivered)
		tx_send(tx, TX_EFFECT_GONE, "i", e->id);
	rc = tx_change_one(tx, RC_CORRUPT);
	if (rc == RC_OK && delivered)
		rc = tx_changed(tx, &n);
	if (rc == RC_OK && !payload)
		rc = tx->ops->erase(tx, e->id, TX_PAYLOAD, RECORD_NONE);
	return rc;
}

static enum rc
rows_write(struct tx *tx, const struct rows *r)
{
	enum rc rc = RC_OK;

	for (int i = 0; i < NROWS && rc == RC_OK; i++)
		if (r->is[i].id != 0 && row_differs(&r->was[i], &r->is[i]))
			rc = row_write(tx, &r->was[i], &r->is[i]);
	tx->did |= TX_WORK;
	return rc;
}

static enum rc
change_step(const struct change *c, struct rows *r, struct step_time at)
{
	struct effect *e = &r->is[THIS], *first = row_or_none(r, FIRST);

	switch (c->kind) {
	case END:
		return effect_step_end(e, first, &c->try, c->end, at);
	case FREE:
		return effect_step_free(e, first, at);
	case RETRY:
		return effect_step_retry(e, first, row_or_none(r, HOLDER), at);
	case DROP:
		return effect_step_drop(e, first, at);
	}
	return RC_INVALID;
}

static enum rc
change_run(struct tx *tx, void *arg)
{
	const struct change *c = arg;
	struct rows r;
	enum rc rc = rows_read(tx, c, &r);

	if (rc == RC_OK)
		rc = change_step(c, &r, tx->at);
	if (rc == RC_OK)
		rc = rows_write(tx, &r);
	rows_free(&r);
	return rc;
}

/* --- a try ---------------------------------------------------------------- */

struct begin {
	int64_t id;
	struct effect_try try;
};

static enum rc
begin_run(struct tx *tx, void *arg)
{
	const struct begin *b = arg;
	struct effect e, was;
	enum rc rc;

	memset(&e, 0, sizeof(e));
	tx_send(tx, TX_EFFECT_READ_FREE, "i", b->id);
	if ((rc = row_read(tx, &e)) != RC_OK)
		return rc;
	was = e;
	rc = e.id != 0 ? effect_step_begin(&e, &b->try, tx->at) : RC_LOST;
	if (rc == RC_OK) {
		/* If the effect's row were lost, so would be the record of its
		 * try. */
		tx->did |= TX_SYNC_FIRST;
		rc = row_write(tx, &was, &e);
	}
	effect_free(&e);
	return rc;
}

/* Takes back a try that was not made. */
static enum rc
undo_run(struct tx *tx, void *arg)
{
	static const struct effect_end end = {
		.state = EFFECT_PENDING,
		.last_error = "it is not known whether its try was recorded",
	};
	const struct outcome_change *o = arg;
	struct change c = { END, o->id, { o->attempt, o->owner }, &end };

	return change_run(tx, &c);
}

enum rc
store_effect_begin(struct store *s, struct effect *effect)
{
	struct begin b = { .id = effect->id, .try.attempts = effect->attempts };
	struct liveness *liveness;
	enum rc rc;

	/* As for a lease: if no process sees the owner's lock, the effect would
	 * be tried twice. */
	if ((rc = store_liveness(s, &liveness)) != RC_OK)
		return rc;
	b.try.owner = liveness_self(liveness);
	rc = store_tx(s, TX_WRITE | TX_BEGINS, begin_run, &b);
	if (rc == RC_PENDING) {
		store_outcome_undo(
		    s, undo_run, b.id, effect->attempts + 1, b.try.owner);
		rc = RC_IO;
	}
	store_next_taken(&store_base(s)->effects_lost, rc);
	if (rc == RC_OK)
		effect->attempts++;
	return rc;
}

enum rc
store_effect_end(
    struct store *s, const struct effect *effect, const struct effect_end *end)
{
	struct change c = { END, effect->id, { .attempts = effect->attempts },
		end };
	struct liveness *liveness;
	enum rc rc;

	if (end->state == EFFECT_NONE || end->after < 0 ||
	    end->after > ROW_TIME_MAX)
		return RC_INVALID;
	if ((rc = store_liveness(s, &liveness)) != RC_OK)
		return rc;
	c.try.owner = liveness_self(liveness);
	return store_tx(s, TX_WRITE, change_run, &c);
}

enum rc
store_effects_free(struct tx *tx, int64_t owner, int *n)
{
	struct change c = { .kind = FREE };
	enum rc rc = RC_OK;
	int freed = 0;

	/* RC_LOST: the row makes no sense. */
	while (rc == RC_OK || rc == RC_LOST) {
		tx_send(tx, TX_EFFECT_OF_OWNER, "ii", owner, c.id);
		rc = tx_one(tx, "i", &c.id);
		if (rc == RC_OK && (rc = change_run(tx, &c)) == RC_OK)
			freed++;
	}
	*n += freed;
	if (freed > 0)
		FAULT(RECOVER_EFFECTS);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- for operators -------------------------------------------------------- */

enum rc
store_effect_retry(struct store *s, int64_t id)
{
	struct change c = { .kind = RETRY, .id = id };

	return store_tx(s, TX_WRITE, change_run, &c);
}

enum rc
store_effect_drop(struct store *s, int64_t id)
{
	struct change c = { .kind = DROP, .id = id };

	return store_tx(s, TX_WRITE, change_run, &c);
}
