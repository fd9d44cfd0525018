/*
 * Finish: the outcome of an attempt that has a lease.  Every change names the
 * attempt's token: an attempt that has lost its lease changes nothing.  If its
 * key became unknown because this process seemed to be gone, the attempt can
 * still record its outcome: see once_key.late_token.
 */
#include "config.h"

#include <string.h>

#include "postgres_outcome.h"
#include "store_check.h"

static void
finish_send(const struct postgres_outcome *o, struct pg *pg,
    enum pg_query query, const struct kept_columns *c)
{
	pg_send(pg, query, "isi?ddditoo", o->id, o->token, o->retention,
	    c->keep, c->status, c->kind, STORE_RESPONSE_VERSION, c->length,
	    c->reason, c->fields, c->nfields, c->body, c->nbody);
}

static enum rc
finish_completed(struct postgres_outcome *o, struct pg *pg)
{
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	finish_send(o, pg, PG_QUERY_FINISH_COMPLETED, &c);
	rc = postgres_outcome_changed(
	    pg, RECORD_IN_PROGRESS, RECORD_COMPLETED, &o->done.expires_at);
	return rc == RC_OK && c.apart ? postgres_outcome_pieces(pg, o) : rc;
}

static enum rc
finish_released(struct postgres_outcome *o, struct pg *pg)
{
	const int64_t requeue = o->outcome.requeue;

	if (requeue >= 0)
		pg_send(pg, PG_QUERY_FINISH_RELEASED, "isiit?", o->id, o->token,
		    o->retention, requeue, o->outcome.last_error,
		    o->outcome.nothing_happened);
	else
		pg_send(pg, PG_QUERY_FINISH_RELEASED, "isint?", o->id, o->token,
		    o->retention, o->outcome.last_error,
		    o->outcome.nothing_happened);
	return postgres_outcome_changed(pg, RECORD_IN_PROGRESS,
	    RECORD_FAILED_RETRYABLE, &o->done.expires_at);
}

static enum rc
finish_unknown(struct postgres_outcome *o, struct pg *pg)
{
	enum rc rc;
	int changed;

	if (!record_may_change(RECORD_IN_PROGRESS, RECORD_UNKNOWN, false))
		return RC_INVALID;
	pg_send(pg, PG_QUERY_FINISH_UNKNOWN, "is?t", o->id, o->token, false,
	    o->outcome.last_error);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_update(pg, &changed);
	if (rc != RC_OK)
		return rc;
	return changed == 1 ? RC_OK : changed == 0 ? RC_LOST : RC_CORRUPT;
}

/* Stores the answer that was not accepted, or deletes that of an earlier
 * attempt. */
static enum rc
finish_refused(const struct postgres_outcome *o, struct pg *pg)
{
	const struct store_refused *r = &o->outcome.refused;
	const uint64_t n =
	    r->length < LIMIT_REFUSED ? r->length : LIMIT_REFUSED;
	enum rc rc;

	if (!r->is && o->attempt <= 1)
		return RC_OK;
	if (r->is)
		pg_send(pg, PG_QUERY_REFUSED_NEW, "idddib", o->id, o->attempt,
		    r->exit_status, r->signal, (int64_t)r->length, r->bytes,
		    (size_t)n);
	else
		pg_send(pg, PG_QUERY_DELETE_REFUSED, "i", o->id);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_done(pg) : rc;
}

/* The attempt may have stored its own response, which stands whatever its end
 * is. */
static enum rc
finish_confirm(struct postgres_outcome *o, struct pg *pg)
{
	enum rc rc;

	pg_send(pg, PG_QUERY_CONFIRM, "is", o->id, o->token);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i", &o->done.expires_at);
	o->done.answered = rc == RC_OK;
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

static enum rc
finish_finish(struct postgres_outcome *o, struct pg *pg)
{
	if (o->outcome.state == RECORD_UNKNOWN)
		return finish_unknown(o, pg);
	return o->outcome.state == RECORD_COMPLETED ? finish_completed(o, pg)
						    : finish_released(o, pg);
}

/* Of a group whose results were lost. */
static enum rc
finish_read(struct postgres_outcome *o, struct pg *pg)
{
	enum rc rc;

	pg_send(pg, PG_QUERY_FINISHED, "i", o->id);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "i", &o->done.expires_at);
	return rc == RC_NOTFOUND ? RC_OK : rc; /* it is past already */
}

static enum rc
finish_run(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;
	enum rc rc;

	memset(&o->done, 0, sizeof(o->done));
	if (o->unread)
		return finish_read(o, pg);
	rc = finish_finish(o, pg);
	if (rc == RC_OK)
		return finish_refused(o, pg);
	return rc == RC_LOST ? finish_confirm(o, pg) : rc;
}

/* --- in a group ----------------------------------------------------------- */

static void
finish_send_shared(struct pg *pg, void *arg)
{
	const struct postgres_outcome *o = arg;
	struct kept_columns c;

	kept_columns(&o->outcome, &c);
	finish_send(o, pg, PG_QUERY_FINISH_SURELY, &c);
	if (!o->no_request)
		pg_send_quietly(pg, PG_QUERY_REQUEST_ERASE, "i", o->id);
}

static enum rc
finish_read_shared(struct pg *pg, void *arg)
{
	struct postgres_outcome *o = arg;

	return pg_one(pg, "i-", &o->done.expires_at);
}

/*
 * A small response of an attempt that surely has its lease: a handler that
 * shares the database may have stored its own, and then the whole group would
 * fail.
 */
static bool
finish_may_share(const struct store *s, const struct postgres_outcome *o)
{
	struct kept_columns c;

	if (s->shared || o->attempt > 1 ||
	    o->outcome.state != RECORD_COMPLETED || o->outcome.refused.is ||
	    !record_may_change(RECORD_IN_PROGRESS, RECORD_COMPLETED, false))
		return false;
	kept_columns(&o->outcome, &c);
	return !c.apart;
}

static struct postgres_outcome *
finish_begin(struct store_outcome *outcome, const struct store_lease *lease,
    int64_t retention)
{
	struct postgres_outcome *o =
	    postgres_outcome_begin(outcome, finish_run, lease->id);

	memcpy(o->token, lease->token, sizeof(o->token));
	o->attempt = lease->attempt;
	o->no_request = lease->no_request;
	o->retention = retention;
	return o;
}

enum rc
postgres_finish(struct store *s, const struct store_lease *lease,
    int64_t retention, struct store_outcome **outcome,
    struct store_finished *done)
{
	struct postgres_outcome *o;
	enum rc rc;

	memset(done, 0, sizeof(*done));
	if (!store_check_finish(lease, retention, *outcome))
		return RC_INVALID;
	o = finish_begin(*outcome, lease, retention);
	if (finish_may_share(s, o))
		o->op = (struct txn_op){ .send = finish_send_shared,
			.read = finish_read_shared,
			.arg = o };
	rc = postgres_outcome_do(s, o, outcome);
	if (rc == RC_OK)
		*done = o->done;
	return rc;
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
	o = finish_begin(outcome, lease, retention);
	o->unsure = true;
	postgres_keeper_take(s, o);
}
