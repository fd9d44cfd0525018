/*
 * Going on after a loss.
 *
 * If the store lacks commits that this process has seen, as after a standby
 * without them was promoted, or if it was restored, every transaction fails
 * until an operator accepts the loss (once_meta.losses grows).  Then the
 * process goes on as a new owner: rows that came back say that the old one
 * holds leases for attempts that have long ended.  The old number is suspected
 * from then on, so its keys become unknown, and an attempt that still runs can
 * record its outcome all the same.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "postgres_impl.h"

static enum rc
losses_run(struct pg *pg, void *arg)
{
	int64_t *losses = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_META, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "--i", losses) : rc;
}

static enum rc
go_on(struct store *s)
{
	struct postgres_former *former = calloc(1, sizeof(*former));
	struct liveness *liveness;
	enum rc rc;

	if (former == NULL)
		return RC_NOMEM;
	/* A second description of the lock file: its lock is another one. */
	if ((rc = liveness_open(&liveness, s->base.local, 0600)) == RC_OK)
		rc = txn_renew(s->pool, liveness_self(liveness));
	if (rc != RC_OK) {
		if (liveness != NULL)
			liveness_close(liveness);
		free(former);
		return rc;
	}
	lock_take(&s->lock);
	former->liveness = s->liveness;
	former->next = s->former;
	s->former = former;
	s->liveness = liveness;
	lock_give(&s->lock);
	s->base.leases_from = 0;
	s->base.queued_from = 0;
	return postgres_owner_new(s);
}

static void
loss_look(struct store *s)
{
	int64_t losses = 0;
	enum rc rc;

	if (txn_apart(s->pool, losses_run, &losses) != RC_OK ||
	    losses <= s->losses)
		return;
	rc = go_on(s);
	if (rc == RC_OK)
		s->losses = losses;
	log_event(LOG_WARN, "loss-accepted", NULL,
	    LOG_S("database", txn_database(s->pool)), LOG_I("losses", losses),
	    LOG_S("result", rc_text(rc)));
}

void
postgres_loss_look(struct store *s)
{
	struct txn_health h;

	txn_health(s->pool, &h);
	if (!h.went_back || !s->keeper || atomic_exchange(&s->renewing, true))
		return;
	loss_look(s);
	s->renewing = false;
}

void
postgres_former_free(struct postgres_former *f)
{
	struct postgres_former *next;

	for (; f != NULL; f = next) {
		next = f->next;
		liveness_close(f->liveness);
		free(f);
	}
}

static enum rc
loss_accept(struct pg *pg, void *arg)
{
	enum rc rc;

	(void)arg;
	pg_send(pg, PG_QUERY_LOSS_ACCEPT, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_done(pg) : rc;
}

enum rc
postgres_accept_loss(struct store *s, char *err, size_t errsize)
{
	const enum rc rc = postgres_write(s, loss_accept, NULL);
	const char *message = txn_message(s->pool);

	if (rc != RC_OK)
		snprintf(err, errsize, "database %s: %s; %s",
		    txn_database(s->pool),
		    message[0] != '\0' ? message : rc_text(rc),
		    rc == RC_PENDING ? "whether the loss was accepted is not "
				       "known: say it again"
				     : "the loss was not accepted");
	return rc;
}
