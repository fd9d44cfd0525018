/*
 * Resolve: a reconciler, a webhook or an operator has found out what a lost
 * attempt did.  The key has no lease.  The change names the attempt, and a
 * reconciler's also the number of tries begun when it read the key: if another
 * try was begun since then, or the key was settled, nothing changes.  An
 * operator may resolve dead letters, too.
 *
 * Abandon: completes an accepted key that no worker has run within its
 * retention.
 */
#include "config.h"

#include <string.h>

#include "postgres_outcome.h"
#include "store_check.h"

static enum rc
resolve_changed(struct postgres_outcome *o, struct pg *pg)
{
	const enum record_state to = o->outcome.state;

	if (o->by_operator && !record_may_change(RECORD_DEAD_LETTER, to, false))
		return RC_INVALID;
	return postgres_outcome_changed(
	    pg, RECORD_UNKNOWN, to, &o->done.expires_at);
}

static enum rc
resolve_completed(struct postgres_outcome *o, struct pg *pg)
{
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	pg_send(pg, PG_QUERY_RESOLVE_COMPLETED, "idd??ddditoo", o->id,
	    o->tries.attempt, o->tries.tries, o->by_operator, c.keep, c.status,
	    c.kind, STORE_RESPONSE_VERSION, c.length, c.reason, c.fields,
	    c.nfields, c.body, c.nbody);
	rc = resolve_changed(o, pg);
	return rc == RC_OK && c.apart ? postgres_outcome_pieces(pg, o) : rc;
}

static enum rc
resolve_released(struct postgres_outcome *o, struct pg *pg)
{
	const int64_t requeue = o->outcome.requeue;

	if (requeue >= 0)
		pg_send(pg, PG_QUERY_RESOLVE_RELEASED, "idd?it", o->id,
		    o->tries.attempt, o->tries.tries, o->by_operator, requeue,
		    o->outcome.last_error);
	else
		pg_send(pg, PG_QUERY_RESOLVE_RELEASED, "idd?nt", o->id,
		    o->tries.attempt, o->tries.tries, o->by_operator,
		    o->outcome.last_error);
	return resolve_changed(o, pg);
}

static enum rc
resolve_dead(struct postgres_outcome *o, struct pg *pg)
{
	pg_send(pg, PG_QUERY_RESOLVE_DEAD, "iddt", o->id, o->tries.attempt,
	    o->tries.tries, o->outcome.last_error);
	return resolve_changed(o, pg);
}

static enum rc
resolve_run(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;

	if (o->outcome.state == RECORD_DEAD_LETTER)
		return resolve_dead(o, pg);
	return o->outcome.state == RECORD_COMPLETED ? resolve_completed(o, pg)
						    : resolve_released(o, pg);
}

static enum rc
resolve_resolve(struct store *s, int64_t id, const struct store_tries *tries,
    bool by_operator, struct store_outcome **outcome)
{
	struct postgres_outcome *o;

	if (!store_check_resolve(id, *outcome, by_operator))
		return RC_INVALID;
	o = postgres_outcome_begin(*outcome, resolve_run, id);
	o->tries = *tries;
	o->by_operator = by_operator;
	return postgres_outcome_do(s, o, outcome);
}

enum rc
postgres_resolve(struct store *s, int64_t id, const struct store_tries *tries,
    struct store_outcome **outcome)
{
	return resolve_resolve(s, id, tries, false, outcome);
}

enum rc
postgres_resolve_by_operator(
    struct store *s, int64_t id, int attempt, struct store_outcome **outcome)
{
	const struct store_tries tries = { .attempt = attempt };

	return resolve_resolve(s, id, &tries, true, outcome);
}

/* --- abandon -------------------------------------------------------------- */

static enum rc
abandon_run(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	pg_send(pg, PG_QUERY_ABANDON, "i?ddditoo", o->id, c.keep, c.status,
	    c.kind, STORE_RESPONSE_VERSION, c.length, c.reason, c.fields,
	    c.nfields, c.body, c.nbody);
	rc = postgres_outcome_changed(
	    pg, RECORD_PENDING, RECORD_COMPLETED, &o->done.expires_at);
	return rc == RC_OK && c.apart ? postgres_outcome_pieces(pg, o) : rc;
}

enum rc
postgres_abandon(struct store *s, int64_t id, struct store_outcome **outcome)
{
	if (!store_check_abandon(id, *outcome))
		return RC_INVALID;
	return postgres_outcome_do(
	    s, postgres_outcome_begin(*outcome, abandon_run, id), outcome);
}
