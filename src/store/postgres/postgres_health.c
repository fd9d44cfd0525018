/*
 * Health: whether the store can do its work.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "words.h"
#include "postgres_admit.h"

static bool
has_all(struct store *s, char *why, size_t size)
{
	struct txn_health h;

	postgres_loss_look(s);
	txn_health(s->pool, &h);
	if (h.went_back && h.other)
		snprintf(why, size, "%s", TXN_OTHER);
	else if (h.went_back)
		snprintf(why, size,
		    "store-went-back: the database %s; look at it, then: "
		    "oncectl accept-loss",
		    h.moved ? "is in another cluster than before, restored "
			      "there from a dump"
			    : "lacks what was written to it");
	return !h.went_back;
}

/* Writes nothing but the number of this session's last transaction.  The result
 * of the read tells whether the write before it has failed. */
static enum rc
touch_run(struct pg *pg, void *arg)
{
	enum rc rc;

	(void)arg;
	pg_send(pg, PG_QUERY_META, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_result(pg) : rc;
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

/*
 * A reservation that failed is tried again, without a key of its own: a web
 * server that asks for health may send no request until it is good.
 */
static bool
can_reserve(struct store *s, char *why, size_t size)
{
	char reason[256];
	enum rc rc;

	lock_take(&s->lock);
	rc = s->reserving;
	lock_give(&s->lock);
	if (rc == RC_OK || !s->keeper)
		return true;
	rc = postgres_admit_try(s, reason, sizeof(reason));
	postgres_admit_result(s, rc);
	if (rc != RC_OK)
		snprintf(why, size, "no key can be reserved: %s", reason);
	return rc == RC_OK;
}

/* A write is tried only if the last one failed. */
static bool
can_write(struct store *s, char *why, size_t size)
{
	char reason[256];
	enum rc last;

	lock_take(&s->lock);
	last = s->last;
	lock_give(&s->lock);
	if (last != RC_OK)
		last = postgres_touch(s, touch_run, s);
	if (postgres_may_begin(s, NULL) == RC_UNRECORDED)
		tell_unrecorded(s, why, size);
	else if (last != RC_OK)
		snprintf(why, size, "the database cannot be written: %s",
		    postgres_why(s, last, reason, sizeof(reason)));
	else
		return true;
	return false;
}

/* Only routes with on_crash = resume or a reconciler need these files. */
static bool
can_begin(struct store *s, char *why, size_t size)
{
	enum rc rc = store_attempt_check(s);

	if (rc != RC_OK)
		snprintf(why, size,
		    "no file for an attempt can be made in %s-attempts: %s; "
		    "nothing that may be resumed or reconciled runs",
		    s->base.local, rc_text(rc));
	return rc == RC_OK;
}

bool
postgres_health(struct store *s, char *why, size_t size)
{
	if (!has_all(s, why, size) ||
	    postgres_check_server(s, why, size) != RC_OK ||
	    !can_write(s, why, size) || !can_reserve(s, why, size) ||
	    !can_begin(s, why, size))
		return false;
	postgres_clock_tell(s, why, size);
	return true;
}
