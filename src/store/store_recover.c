/*
 * Recover: ends the leases of owners that are gone, and their tries of effects.
 *
 * An owner of this host whose lock is free is dead: its keys are recovered by
 * their on_crash.  An owner of another host is only suspected: its keys become
 * unknown whatever their on_crash is, and it may still record its outcomes.  So
 * its row is not locked: if it moves again while its keys become unknown, no
 * harm is done.
 *
 * A transaction is bounded, because other writes wait for its locks meanwhile.
 * A row that another one has locked, perhaps a handler's, is left for the next
 * pass.
 */
#include "config.h"

#include <stdlib.h>

#include "attempt_lock.h"
#include "decide.h"
#include "fault.h"
#include "log.h"
#include "rows.h"
#include "store_change.h"
#include "store_ops.h"
#include "uuid.h"

/* Owners of one look, and rows of one transaction, which takes some 5 ms. */
#define OWNERS_MAX 64
#define ROWS_MAX   100

/* Where a transaction begins or ends: at that owner, after that lease. */
struct recover_place {
	size_t owner;
	int64_t lease;
};

struct recover {
	struct store *s;
	const struct store_base *base; /* of s */
	const struct store_gone *gone;
	size_t ngone;
	/* read after the owners died; NULL: it is not known which processes
	 * live */
	const struct process_list *processes;
	int64_t only; /* one key; 0: all of the owners' */
	struct recover_place from, to;
	int room; /* for rows that the transaction may still read */
	int limit, n;
	struct store_change *changes; /* room for limit */
	int effects;                  /* number freed, and due again */
};

/*
 * Whether processes of the attempt may still act; true if that cannot be
 * determined.  If the lock file was replaced, the owner may be alive after all.
 */
static bool
may_live(const struct recover *r, const struct record *lost)
{
	return lost->lock_file != r->base->host ||
	    attempt_lock_lives(
		r->base->local, lost->attempt_lock, r->processes);
}

/* Reads the leases of the owner after r->to, as many as there is room for. */
static enum rc
read_leases(struct tx *tx, struct recover *r, int64_t owner,
    struct record *lost, int *n)
{
	enum rc rc;

	tx_send(tx, TX_RECOVER_ROWS, "iiii", owner, r->to.lease,
	    (int64_t)r->room, (int64_t)r->base->leases_from);
	rc = tx_result(tx);
	while (rc == RC_OK && r->room > 0 && (rc = tx_next(tx)) == RC_OK) {
		r->room--;
		rc = tx_this_record(tx, &lost[*n]);
		if (rc != RC_OK && rc != RC_CORRUPT)
			return rc;
		r->to.lease = lost[*n].id;
		if (rc == RC_OK)
			++*n;
		else
			rows_bad(tx->database, "once_key", r->to.lease);
		rc = RC_OK;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* The same for that one key. */
static enum rc
read_lease(struct tx *tx, const struct recover *r, int64_t owner,
    struct record *lost, int *n)
{
	enum rc rc = store_change_read(tx, r->only, false, lost);

	if (rc != RC_OK)
		return rc;
	*n = 1;
	return lost->owner == owner ? RC_OK : RC_LOST;
}

static enum rc
recover_one(
    struct tx *tx, struct recover *r, bool suspected, struct record *lost)
{
	struct store_change *c = &r->changes[r->n];
	const struct record was = *lost;
	struct step s = { 0 };
	enum rc rc;

	if (suspected)
		rc = step_suspect(lost, tx->at, &s);
	else
		rc = step_recover(lost, !lost->unconfirmed && may_live(r, lost),
		    decide_requeue(lost->attempt, uuid_bits()), tx->at, &s);
	if (rc == RC_BUSY) /* later */
		return RC_OK;
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, lost, &s, NULL);
	if (rc != RC_OK)
		return rc == RC_LOST ? RC_CORRUPT : rc;
	rows_change(lost, c);
	c->from = was.state;
	c->to = lost->state;
	r->n++;
	FAULT(RECOVER_KEY);
	return RC_OK;
}

/* Some leases of the owner r->to; goes to the next owner if there is room. */
static enum rc
recover_owner(struct tx *tx, struct recover *r, struct record *lost)
{
	const struct store_gone *owner = &r->gone[r->to.owner];
	const bool begins = r->only == 0 && r->to.lease == 0;
	enum rc rc = RC_OK;
	int n = 0;

	if (owner->suspected && owner->beat > 0)
		rc = tx->ops->owner_still(tx, owner->id, owner->beat);
	if (rc == RC_LOST) { /* it moves again */
		r->to = (struct recover_place){ .owner = r->to.owner + 1 };
		return RC_OK;
	}
	if (rc == RC_OK)
		rc = r->only > 0 ? read_lease(tx, r, owner->id, lost, &n)
				 : read_leases(tx, r, owner->id, lost, &n);
	for (int i = 0; i < n && rc == RC_OK; i++)
		rc = recover_one(tx, r, owner->suspected, &lost[i]);
	for (int i = 0; i < n; i++)
		record_free(&lost[i]);
	if (rc == RC_OK && begins)
		rc = store_effects_free(tx, owner->id, &r->effects);
	if (r->room > 0)
		r->to = (struct recover_place){ .owner = r->to.owner + 1 };
	return rc;
}

static enum rc
recover_run(struct tx *tx, void *arg)
{
	struct recover *r = arg;
	struct record *lost;
	enum rc rc = RC_OK;

	store_changes_free(r->changes, r->n);
	r->n = r->effects = 0;
	r->to = r->from;
	r->room = r->limit;
	if ((lost = calloc(ROWS_MAX, sizeof(*lost))) == NULL)
		return RC_NOMEM;
	while (rc == RC_OK && r->room > 0 && r->to.owner < r->ngone)
		rc = recover_owner(tx, r, lost);
	free(lost);
	if (r->effects > 0)
		tx->did |= TX_WORK;
	return rc;
}

/* Runs one transaction, and adds the number of its changes to *n.  The owners
 * died before the list of processes is read, so none of them can start another
 * process. */
static enum rc
recover_some(struct recover *r, int *n)
{
	struct process_list *processes = NULL;
	enum rc rc;

	(void)process_list(&processes);
	r->processes = processes;
	r->n = 0;
	rc = store_tx(r->s, TX_WRITE | TX_SEARCHES, recover_run, r);
	process_list_free(processes);
	if (rc != RC_OK) {
		store_changes_free(r->changes, r->n);
		return rc;
	}
	*n += r->n; /* the caller owns them now */
	r->from = r->to;
	if (r->effects > 0)
		log_event(
		    LOG_WARN, "effects-freed", NULL, LOG_I("n", r->effects));
	return RC_OK;
}

/* Recovers the attempts of those owners.  Rows that make no sense, or that have
 * to wait, stay. */
static enum rc
recover_owners(struct store *s, const struct store_gone *gone, size_t ngone,
    int limit, struct store_change *changes, int *n)
{
	struct recover r = {
		.s = s,
		.base = store_base(s),
		.gone = gone,
		.ngone = ngone,
	};
	enum rc rc = RC_OK;

	while (rc == RC_OK && *n < limit && r.from.owner < ngone) {
		r.limit = limit - *n < ROWS_MAX ? limit - *n : ROWS_MAX;
		r.changes = changes + *n;
		rc = recover_some(&r, n);
	}
	return rc;
}

enum rc
store_recover_leases(
    struct store *s, int limit, struct store_change *changes, int *n)
{
	struct store_gone gone[OWNERS_MAX];
	size_t ngone = OWNERS_MAX;
	int64_t after = 0;
	enum rc rc = RC_OK;

	while (rc == RC_OK && *n < limit && ngone == OWNERS_MAX) {
		rc = store_lost_owners(s, after, gone, OWNERS_MAX, &ngone);
		if (rc != RC_OK || ngone == 0)
			break;
		after = gone[ngone - 1].id;
		rc = recover_owners(s, gone, ngone, limit, changes, n);
	}
	return rc;
}

enum rc
store_recover_key(struct store *s, int64_t id, int64_t owner,
    struct store_change *change, int *n)
{
	struct store_gone gone;
	struct recover r = {
		.s = s,
		.base = store_base(s),
		.gone = &gone,
		.ngone = 1,
		.only = id,
		.limit = 1,
		.changes = change,
	};
	enum rc rc;

	*n = 0;
	if (id <= 0 || !store_owner_gone(s, owner, &gone))
		return RC_OK;
	rc = recover_some(&r, n);
	return rc == RC_LOST ? RC_OK : rc; /* the lease has ended */
}

bool
store_owner_is_dead(struct store *s, int64_t owner)
{
	struct store_gone gone;

	return store_owner_gone(s, owner, &gone);
}
