/*
 * How requests are admitted: see store_admit.h; and whether anything may begin.
 */
#include "config.h"

#include <string.h>

#include "fault.h"
#include "rows.h"
#include "store_admit.h"
#include "postgres_impl.h"

/* How often a transaction is run, because another one was faster. */
#define TRIES 8

/* Bytes of a stored request that may share a transaction. */
#define SHARED_REQUEST 16384

/* Failed outcomes that their callers still try to record, at most. */
#define FAILING_MAX 8

/* Outcomes of one path that are kept while handlers lock their keys, at most.
 * Each lock needs a session of the server, which bounds those of all paths, and
 * spool_total bounds their bodies. */
#define HELD_MAX 64

/* The store is locked. */
static bool
held_too_many(const struct store *s, const char *path)
{
	unsigned n = 0;

	if (path == NULL || s->nheld <= HELD_MAX)
		return false;
	for (const struct postgres_outcome *o = s->late; o != NULL; o = o->next)
		n += o->held && o->change.outcome.log.path != NULL &&
		    strcmp(o->change.outcome.log.path, path) == 0;
	return n > HELD_MAX;
}

enum rc
postgres_may_begin(struct store *s, const char *path)
{
	bool stuck;

	lock_take(&s->lock);
	stuck = s->nlate > s->nheld || s->failing > FAILING_MAX ||
	    held_too_many(s, path);
	lock_give(&s->lock);
	return stuck ? RC_UNRECORDED : postgres_may_begin_now(s);
}

enum rc
postgres_may_begin_now(const struct store *s)
{
	return txn_unsafe(s->pool) != NULL ? RC_UNSAFE : RC_OK;
}

/* --- the transaction ------------------------------------------------------ */

struct postgres_admit {
	struct store *store;
	struct store_admit *admit;
	unsigned did;
	/* in a group */
	struct postgres_tx tx;
	bool asked;
	enum rc rc;                /* of store_admit_take() */
	struct store_lease unread; /* of a group whose results were lost */
};

static void
admit_begin(struct postgres_admit *x, struct store *s, struct store_admit *p)
{
	const struct store_reservation *what = p->what;

	memset(x, 0, sizeof(*x));
	x->store = s;
	x->admit = p;
	p->secret = s->secret;
	p->used = s->bytes;
	p->leases_from = s->base.leases_from;
	p->queued_from = s->base.queued_from;
	if (p->keep)
		p->more = (uint64_t)what->environment_len + what->body_len;
	p->number = postgres_number(s, &what->identity).first;
}

/* At the beginning of each transaction. */
static enum rc
admit_begins(struct postgres_admit *x)
{
	struct store_admit *p = x->admit;

	p->owner = txn_owner(x->store->pool);
	p->spec =
	    postgres_spec_noted(x->store, p->owner, p->what->fingerprint_spec);
	return postgres_may_begin_now(x->store);
}

/* RC_EXISTS: nothing is changed. */
static enum rc
admit_run(struct pg *pg, void *arg)
{
	struct postgres_admit *x = arg;
	struct store_admit *p = x->admit;
	struct postgres_tx t;
	enum rc rc = admit_begins(x);

	if (rc != RC_OK)
		return rc;
	postgres_tx_begin(&t, x->store, pg);
	t.unlocked = true;
	/* What counts the keys in progress must see what another process has
	 * just committed. */
	if (p->what->max_active > 0)
		pg_send_quietly(pg, PG_QUERY_CALLER_LOCK, "i", p->what->caller);
	store_admit_ask(&t.tx, p);
	rc = store_admit_take(&t.tx, p);
	if (rc == RC_OK)
		rc = postgres_tx_end(&t);
	x->did = t.tx.did;
	return rc == RC_OK && !p->changed ? RC_EXISTS : rc;
}

/* --- in a group ----------------------------------------------------------- */

/* A large request that is stored, and the lock that a limit of callers needs,
 * would keep others waiting, and so would a spec that is not noted. */
static bool
admit_may_share(const struct postgres_admit *x)
{
	const struct store_admit *p = x->admit;

	return !p->accepts && p->what->max_active == 0 &&
	    p->more <= SHARED_REQUEST &&
	    postgres_spec_noted(
		x->store, x->store->owner, p->what->fingerprint_spec) != 0;
}

static void
share_ask(struct pg *pg, void *arg)
{
	struct postgres_admit *x = arg;

	x->asked = admit_begins(x) == RC_OK && x->admit->spec != 0;
	if (!x->asked)
		return;
	postgres_tx_begin(&x->tx, x->store, pg);
	x->tx.unlocked = x->tx.asked = x->tx.timed = true;
	store_admit_ask(&x->tx.tx, x->admit);
}

static void
share_send(struct pg *pg, void *arg, struct txn_group *group)
{
	struct postgres_admit *x = arg;
	struct store_admit *p = x->admit;

	(void)pg;
	x->rc = RC_LOST;
	if (!x->asked)
		return;
	postgres_tx_time(&x->tx, group->now, group->clock);
	p->before = group->kept;
	x->rc = store_admit_take(&x->tx.tx, p);
	if (x->rc == RC_OK && p->changed)
		group->kept += p->more;
}

static enum rc
share_read(struct pg *pg, void *arg)
{
	struct postgres_admit *x = arg;
	enum rc rc;

	(void)pg;
	if (!x->asked)
		return RC_LOST;
	rc = postgres_tx_end(&x->tx);
	return x->rc == RC_OK ? rc : x->rc;
}

/* Admits a request whose key has no record, together with other operations.
 * RC_LOST: that must be tried alone. */
static enum rc
admit_share(struct postgres_admit *x)
{
	struct txn_op op = { .ask = share_ask,
		.send = share_send,
		.read = share_read,
		.arg = x };
	struct store_admit *p = x->admit;
	enum txn_shared how;
	enum rc rc;

	p->shared = true;
	rc = postgres_share(x->store, TXN_WRITE, &op, &how);
	p->shared = false;
	p->before = 0;
	if (how == TXN_SHARED_UNREAD && x->rc == RC_OK && p->changed) {
		p->unsure = true;
		rows_lease(&p->taken, &x->unread);
	}
	return how == TXN_SHARED_DONE || how == TXN_SHARED_FAILED ? rc
								  : RC_LOST;
}

/* --- both ----------------------------------------------------------------- */

static enum rc
admit_try(struct postgres_admit *x)
{
	struct store_admit *p = x->admit;
	enum rc rc = admit_may_share(x) ? admit_share(x) : RC_LOST;

	if (rc == RC_OK)
		return rc;
	for (int i = 0; rc == RC_LOST && i < TRIES; i++)
		rc = postgres_write(x->store, admit_run, x);
	if (rc == RC_OK && p->is_new)
		postgres_spec_note(
		    x->store, p->owner, p->what->fingerprint_spec, p->spec);
	if (rc == RC_LOST)
		rc = RC_BUSY;
	return rc;
}

/* The lease of an attempt that does not begin, whether it is there or not. */
static void
admit_release(struct postgres_admit *x, const struct store_lease *lease)
{
	store_outcome_release(x->store, lease, x->admit->what->retention, -1);
}

enum rc
postgres_admit_do(struct store *s, struct store_admit *p)
{
	struct postgres_admit x;
	struct store_lease lease;
	enum rc rc;

	rc = postgres_may_begin(s, p->what->identity.path);
	if (rc != RC_OK)
		return rc;
	FAULT(OP_ASKED);
	admit_begin(&x, s, p);
	rc = admit_try(&x);
	if (rc == RC_OK)
		postgres_note(s, RC_OK);
	if (rc == RC_OK && (x.did & TX_WORK) != 0)
		store_news_made(s->base.news);
	/* The group took the lease, and this caller does not use it. */
	if (rc != RC_OK && rc != RC_EXISTS && p->unsure)
		admit_release(&x, &x.unread);
	/* That of accept is not taken back: if the request is stored after all,
	 * another process may have begun to run it by then. */
	if (rc == RC_PENDING && !p->accepts) {
		rows_lease(&p->taken, &lease);
		if (p->changed)
			admit_release(&x, &lease);
		rc = RC_IO;
	}
	return rc == RC_EXISTS ? RC_OK : rc;
}
