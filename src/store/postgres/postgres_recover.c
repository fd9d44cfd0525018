/*
 * Recover: ends the leases of lost owners, and their tries of effects.
 *
 * An owner of this host whose lock is free is dead: its keys are recovered by
 * their on_crash.  An owner of another host is only suspected: its keys become
 * unknown whatever their on_crash is, and it may still record its outcomes.
 * Once this host knows that an owner of its own is dead which another host had
 * suspected, and that all processes of the attempt have exited, it releases the
 * key after all, if on_crash says so.
 *
 * A transaction locks the rows that it changes.  A row that another one has
 * locked, perhaps a handler's, is left for the next pass.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "log.h"
#include "postgres_attempt.h"
#include "postgres_row.h"
#include "rows.h"
#include "store_effects.h"
#include "attempt_lock.h"

/* Lost owners of one look, and rows of one transaction. */
#define OWNERS_MAX 64
#define ROWS_MAX   100

struct recover {
	struct store *s;
	/* read after the owners died; NULL: it is not known which processes
	 * live */
	const struct process_list *processes;
	const struct postgres_gone *owner;
	int64_t only; /* one attempt; 0: all */
	int64_t from; /* begins after that row */
	int limit;    /* rows */

	int64_t after; /* ended after that row */
	bool more;     /* there may be more */
	int n;
	struct store_change *changes; /* room for limit */
	int effects;                  /* number freed, and due again */
};

/* --- one attempt ---------------------------------------------------------- */

static bool
attempt_lock_may_live(const struct recover *r, const struct record *lost)
{
	return lost->lock_file != r->s->host.number ||
	    attempt_lock_lives(
		r->s->base.local, lost->attempt_lock, r->processes);
}

/* Sends the change of a key whose owner is dead, and returns its new state.
 * RECORD_NONE: the key has to wait, and nothing was sent. */
static enum record_state
send_dead(struct recover *r, struct pg *pg, const struct record *lost)
{
	bool lives;

	if (lost->state == RECORD_COMPLETED) {
		pg_send(pg, PG_QUERY_CONFIRM, "is", lost->id, lost->token);
		return RECORD_COMPLETED;
	}
	lives = attempt_lock_may_live(r, lost);
	if (lost->resume && lives && postgres_now(r->s) < lost->locked_until)
		return RECORD_NONE;
	if (lost->resume && !lives) {
		postgres_release_send(pg, lost, lost->token);
		return RECORD_FAILED_RETRYABLE;
	}
	pg_send(pg, PG_QUERY_FINISH_UNKNOWN, "is?s", lost->id, lost->token,
	    !lives, "oncewrap was lost");
	return RECORD_UNKNOWN;
}

/* The same if the owner is suspected. */
static enum record_state
send_suspected(struct pg *pg, const struct record *lost)
{
	if (lost->state == RECORD_COMPLETED) {
		pg_send(
		    pg, PG_QUERY_RECOVER_ANSWERED, "is", lost->id, lost->token);
		return RECORD_COMPLETED;
	}
	pg_send(pg, PG_QUERY_RECOVER_SUSPECTED, "iss", lost->id, lost->token,
	    "the host of its oncewrap gave no sign of life");
	return RECORD_UNKNOWN;
}

/* Sends the change of a key, and notes it. */
static void
send_change(struct recover *r, struct pg *pg, struct record *lost)
{
	struct store_change *c = &r->changes[r->n];
	enum record_state to;

	if (r->only != 0 && lost->id != r->only)
		return;
	to = r->owner->life == POSTGRES_DEAD ? send_dead(r, pg, lost)
					     : send_suspected(pg, lost);
	if (to == RECORD_NONE)
		return;
	assert(lost->state == to || record_may_change(lost->state, to, false));
	rows_change(lost, c);
	c->to = to;
	r->n++;
}

/* Reads the rows, and sends the change of each. */
static enum rc
send_changes(struct recover *r, struct pg *pg)
{
	struct record lost;
	int rows = 0;
	enum rc rc;

	while ((rc = pg_next(pg)) == RC_OK) {
		rc = postgres_row_read(pg, &lost);
		if (rc != RC_OK && rc != RC_CORRUPT)
			return rc;
		rows++;
		r->after = lost.id;
		if (rc == RC_CORRUPT)
			postgres_row_bad(r->s, "once_key", lost.id);
		else
			send_change(r, pg, &lost);
		record_free(&lost);
	}
	r->more = rows == r->limit;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- one owner ------------------------------------------------------------ */

/* The result of a change of one row, which this transaction has locked. */
static enum rc
read_change(struct pg *pg)
{
	enum rc rc = pg_result(pg);

	if (rc == RC_OK && pg_changed(pg) != 1)
		rc = RC_CORRUPT;
	FAULT(RECOVER_KEY);
	return rc;
}

static enum rc
free_effects(struct tx *tx, void *arg)
{
	struct recover *r = arg;

	return store_effects_free(tx, r->owner->id, &r->effects);
}

static enum rc
run_owner(struct pg *pg, void *arg)
{
	struct recover *r = arg;
	const bool still =
	    r->owner->life == POSTGRES_SUSPECTED && r->owner->beat > 0;
	const bool effects = r->only == 0 && r->from == 0;
	unsigned did;
	enum rc rc;

	store_changes_free(r->changes, r->n);
	r->n = r->effects = 0;
	r->after = r->from;
	if (still)
		pg_send(pg, PG_QUERY_OWNER_STILL, "ii", r->owner->id,
		    r->owner->beat);
	pg_send(pg, PG_QUERY_RECOVER_ROWS, "iiii", r->owner->id, r->from,
	    (int64_t)r->limit, r->s->base.leases_from);
	if ((rc = pg_sync(pg)) == RC_OK && still)
		rc = pg_one(pg, "-");
	if (rc == RC_NOTFOUND)
		return RC_LOST; /* it moves again */
	if (rc == RC_OK)
		rc = pg_result(pg);
	if (rc == RC_OK)
		rc = send_changes(r, pg);
	if (rc != RC_OK || (r->n == 0 && !effects))
		return rc;
	rc = pg_sync(pg);
	for (int i = 0; i < r->n && rc == RC_OK; i++)
		rc = read_change(pg);
	if (rc == RC_OK && effects)
		rc = postgres_tx_run(r->s, pg, free_effects, r, &did);
	return rc;
}

/* Runs one transaction, and adds the number of its changes to *n. */
static enum rc
recover_rows(struct recover *r, int *n)
{
	enum rc rc = postgres_write(r->s, run_owner, r);

	if (rc != RC_OK) {
		store_changes_free(r->changes, r->n);
		r->n = 0;
		r->more = false;
		return rc == RC_LOST ? RC_OK : rc;
	}
	*n += r->n; /* the caller owns them now */
	if (r->effects > 0)
		log_event(
		    LOG_WARN, "effects-freed", NULL, LOG_I("n", r->effects));
	if (r->n > 0)
		postgres_news_ended(&r->s->news);
	if (r->n > 0 || r->effects > 0)
		postgres_news_made(&r->s->news);
	return RC_OK;
}

/* Recovers the attempts of an owner.  Rows that make no sense, or that have to
 * wait, stay. */
static enum rc
recover_owner(struct store *s, const struct postgres_gone *owner,
    const struct process_list *processes, struct store_change *changes,
    int limit, int *n)
{
	struct recover r = { .s = s, .owner = owner, .processes = processes };
	enum rc rc;

	do {
		r.limit = limit - *n < ROWS_MAX ? limit - *n : ROWS_MAX;
		r.changes = changes + *n;
		r.n = 0;
		rc = recover_rows(&r, n);
		r.from = r.after;
	} while (rc == RC_OK && r.more && *n < limit);
	return rc;
}

/* --- all of them ---------------------------------------------------------- */

/* The owners die before the list of processes is read, so none of them can
 * start another process. */
static enum rc
recover_gone(struct store *s, const struct postgres_gone *gone, int ngone,
    struct store_change *changes, int limit, int *n)
{
	struct process_list *processes = NULL;
	enum rc rc = RC_OK;

	(void)process_list(&processes);
	for (int i = 0; i < ngone && rc == RC_OK && *n < limit; i++) {
		if (gone[i].busy)
			rc = recover_owner(
			    s, &gone[i], processes, changes, limit, n);
		if (rc == RC_OK &&
		    (gone[i].life == POSTGRES_DEAD || gone[i].old))
			rc = postgres_owner_remove(s, gone[i].id);
	}
	process_list_free(processes);
	return rc;
}

static enum rc
recover_all(struct store *s, struct store_change *changes, int limit, int *n)
{
	struct postgres_gone gone[OWNERS_MAX];
	int64_t after = 0;
	int ngone = OWNERS_MAX;
	enum rc rc = RC_OK;

	while (rc == RC_OK && *n < limit && ngone == OWNERS_MAX) {
		ngone = postgres_owners_gone(s, after, gone, OWNERS_MAX);
		if (ngone == 0)
			break;
		after = gone[ngone - 1].id;
		rc = recover_gone(s, gone, ngone, changes, limit, n);
	}
	return rc;
}

/* Only of an operator. */
static void
tell_no_file(struct store *s)
{
	char why[512];

	txn_message_copy(s->pool, why, sizeof(why));
	log_event(LOG_WARN, "host-unknown", NULL,
	    LOG_S("database", txn_database(s->pool)), LOG_S("message", why));
}

enum rc
postgres_recover(
    struct store *s, int limit, struct store_change *changes, int *n)
{
	struct liveness *liveness;
	enum rc rc;

	*n = 0;
	rc = postgres_liveness(s, &liveness);
	if (rc == RC_NOTFOUND) {
		tell_no_file(s);
		rc = RC_OK;
	}
	if (rc == RC_OK)
		rc = postgres_owner_look(s);
	if (rc == RC_OK)
		rc = recover_all(s, changes, limit, n);
	if (rc == RC_OK && liveness != NULL)
		rc = postgres_recover_late(s, limit, changes, n);
	/* Keys recovered above no longer name their attempts. */
	if (rc == RC_OK && liveness != NULL)
		rc = postgres_attempt_clean(s);
	if (rc == RC_OK)
		rc = postgres_operators_forget(s);
	return rc == RC_OK ? postgres_measure(s) : rc;
}

enum rc
postgres_recover_key(struct store *s, int64_t id, int64_t owner,
    struct store_change *change, int *n)
{
	struct process_list *processes = NULL;
	struct postgres_gone gone;
	struct recover r = {
		.s = s,
		.owner = &gone,
		.only = id,
		.from = id - 1,
		.limit = 1,
		.changes = change,
	};
	enum rc rc;

	*n = 0;
	if (id <= 0 || !postgres_owner_gone(s, owner, &gone))
		return RC_OK;
	(void)process_list(&processes);
	r.processes = processes;
	rc = recover_rows(&r, n);
	process_list_free(processes);
	return rc;
}
