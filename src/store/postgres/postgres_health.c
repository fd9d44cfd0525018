/*
 * Health: whether the store can do its work.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "postgres_impl.h"
#include "words.h"

#define REASON_SIZE 256

static bool
has_all(const struct store *s, char *why, size_t size)
{
	struct txn_health h;

	txn_health(s->pool, &h);
	if (h.went_back && h.other)
		snprintf(why, size, "%s", TXN_OTHER);
	else if (h.went_back)
		snprintf(why, size,
		    "store-went-back: " TXN_BACK
		    "; look at it, then: oncectl accept-loss");
	return !h.went_back;
}

static void
tell_unrecorded(struct store *s, char *why, size_t size)
{
	unsigned late, held;

	lock_take(&s->lock);
	late = s->nlate + (unsigned)s->failing;
	held = s->nheld;
	lock_give(&s->lock);
	snprintf(why, size, "%u %s not recorded yet; nothing new runs", late,
	    PLURAL(late, "outcome is", "outcomes are"));
	postgres_tell_standby(s, why, size);
	if (held > 0)
		snprintf(why + strlen(why), size - strlen(why),
		    "; transactions in the database have locked the keys of "
		    "%u (event key-locked): end them",
		    held);
}

/* RC_EXISTS: it succeeds, and is rolled back.  Else the text tells why not. */
static enum rc
run_trial(struct pg *pg, void *reason)
{
	enum rc rc;

	pg_send(pg, PG_QUERY_TRIAL, "");
	rc = pg_update(pg, NULL);
	snprintf(reason, REASON_SIZE, "%s", pg_message(pg));
	return rc == RC_OK ? RC_EXISTS : rc;
}

/*
 * After a failure a write is tried, which writes nothing but the number of this
 * session's last transaction; and a daemon's inserts a key, as a trial: a web
 * server that asks for health may send no request until it is good.
 */
static enum rc
try_write(struct store *s, char *why, size_t size)
{
	char reason[REASON_SIZE] = "";
	enum rc rc = postgres_ask(s, TXN_WRITE, PG_QUERY_META, "", "---");

	if (rc != RC_OK) {
		snprintf(why, size, "the database cannot be written: %s",
		    postgres_why(s, rc, reason, sizeof(reason)));
		return rc;
	}
	if (!s->daemon)
		return RC_OK;
	rc = postgres_run(s, TXN_WRITE, run_trial, reason);
	if (rc == RC_EXISTS)
		return RC_OK;
	snprintf(why, size, "no key can be reserved: %s",
	    *reason != '\0' ? reason : rc_text(rc));
	return rc;
}

static bool
can_write(struct store *s, char *why, size_t size)
{
	enum rc rc;

	if (postgres_may_begin(s, NULL) == RC_UNRECORDED) {
		tell_unrecorded(s, why, size);
		return false;
	}
	lock_take(&s->lock);
	rc = s->failed;
	lock_give(&s->lock);
	if (rc == RC_OK)
		return true;
	rc = try_write(s, why, size);
	postgres_note(s, rc);
	return rc == RC_OK;
}

bool
postgres_health(struct store *s, char *why, size_t size)
{
	if (!has_all(s, why, size) ||
	    postgres_check_server(s, why, size) != RC_OK ||
	    !can_write(s, why, size) || !store_attempt_check(s, why, size))
		return false;
	postgres_clock_tell(s, why, size);
	return true;
}

/* --- a loss --------------------------------------------------------------- */

/*
 * If the store lacks commits that this process has seen, as after a standby
 * without them was promoted, or if it was restored, every transaction fails
 * until an operator accepts the loss (once_meta.losses grows).  Then the
 * process goes on as a new owner: rows that came back say that the old one
 * holds leases for attempts that have long ended.  The old number is suspected
 * from then on, so its keys become unknown, and an attempt that still runs can
 * record its outcome all the same.
 */

static enum rc
run_losses(struct pg *pg, void *losses)
{
	pg_send(pg, PG_QUERY_META, "");
	return pg_one(pg, "--i", (int64_t *)losses);
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

void
postgres_loss_look(struct store *s)
{
	struct txn_health h;
	int64_t losses = 0;
	enum rc rc;

	txn_health(s->pool, &h);
	if (!h.went_back || txn_apart(s->pool, run_losses, &losses) != RC_OK ||
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
postgres_former_free(struct postgres_former *f)
{
	struct postgres_former *next;

	for (; f != NULL; f = next) {
		next = f->next;
		liveness_close(f->liveness);
		free(f);
	}
}

enum rc
postgres_accepted(
    struct store *s, enum rc rc, const char *what, char *err, size_t errsize)
{
	char why[512];

	txn_message(s->pool, why, sizeof(why));
	if (rc != RC_OK)
		snprintf(err, errsize,
		    rc == RC_PENDING ? "database %s: %s; whether the %s was "
				       "accepted is not known: say it again"
				     : "database %s: %s; the %s was not "
				       "accepted",
		    txn_database(s->pool), *why != '\0' ? why : rc_text(rc),
		    what);
	return rc;
}

enum rc
postgres_accept_loss(struct store *s, char *err, size_t errsize)
{
	return postgres_accepted(s,
	    postgres_ask(s, TXN_WRITE, PG_QUERY_LOSS_ACCEPT, "", ""), "loss",
	    err, errsize);
}

/* --- sizes ---------------------------------------------------------------- */

enum rc
postgres_measure(struct store *s)
{
	int64_t bytes;
	enum rc rc =
	    postgres_ask(s, TXN_READ, PG_QUERY_STORE_BYTES, "", "i", &bytes);

	if (rc == RC_OK)
		s->bytes = bytes;
	return rc;
}
