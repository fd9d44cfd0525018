/*
 * Finish, where several threads do so together; and where it is not known
 * whether an attempt has begun.
 */
#include "config.h"

#include "postgres_outcome.h"

static void
finish_send(struct pg *pg, void *arg, struct txn_group *group)
{
	const struct outcome_change *o =
	    &((const struct postgres_outcome *)arg)->change;
	struct kept_columns c;

	(void)group;
	kept_columns(&o->outcome, &c);
	pg_send(pg, PG_QUERY_FINISH, "isi?ddditoo", o->id, o->token,
	    o->retention, c.keep, c.status, c.kind, STORE_RESPONSE_VERSION,
	    c.length, c.reason, c.fields, c.nfields, c.body, c.nbody);
	if (!o->no_request)
		pg_send_quietly(pg, PG_QUERY_FINISH_REQUEST, "i", o->id);
}

static enum rc
finish_read(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;
	enum rc rc = pg_one(pg, "i", &o->change.done.expires_at);

	return rc == RC_NOTFOUND ? RC_BUSY : rc;
}

/*
 * A small response of an attempt that surely has its lease.  A handler that
 * shares the database may have stored its own: then a group tries in vain.
 */
static bool
finish_may_share(const struct store *s, const struct outcome_change *o)
{
	struct kept_columns c;

	if (o->token[0] == '\0' || s->shared || o->attempt > 1 ||
	    o->outcome.state != RECORD_COMPLETED || o->outcome.refused.is ||
	    o->outcome.errors.len > 0 ||
	    !record_may_change(RECORD_IN_PROGRESS, RECORD_COMPLETED, false))
		return false;
	kept_columns(&o->outcome, &c);
	return !c.apart;
}

void
postgres_finish_share(const struct store *s, struct postgres_outcome *o)
{
	o->op = (struct txn_op){ .send = NULL };
	if (finish_may_share(s, &o->change))
		o->op = (struct txn_op){
			.send = finish_send, .read = finish_read, .arg = o
		};
}

enum rc
postgres_finish_read(struct pg *pg, struct postgres_outcome *o)
{
	struct kept_columns c;
	bool is_ours;
	enum rc rc;

	kept_columns(&o->change.outcome, &c);
	pg_send(pg, PG_QUERY_FINISHED, "i?dtoo", o->change.id, c.keep, c.status,
	    c.reason, c.fields, c.nfields, c.body, c.nbody);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "?i", &is_ours, &o->change.done.expires_at);
	if (rc == RC_NOTFOUND) /* it is past already */
		return RC_OK;
	return rc == RC_OK && !is_ours ? RC_LOST : rc;
}

void
postgres_keeper_release(struct store *s, const struct store_lease *lease,
    int64_t retention, int64_t requeue)
{
	struct store_outcome *outcome = postgres_outcome_new(s);
	struct postgres_outcome *o;

	if (outcome == NULL) {
		postgres_keeper_failed(lease->id);
		return;
	}
	outcome->state = RECORD_FAILED_RETRYABLE;
	outcome->requeue = requeue;
	o = (struct postgres_outcome *)(void *)store_finish_begin(
	    outcome, lease, retention);
	o->unsure = true;
	postgres_keeper_take(s, o);
}
