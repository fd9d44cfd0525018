/*
 * What PostgreSQL has to recover beside leases: attempts that other hosts took
 * for lost, and rows of processes.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "log.h"
#include "postgres_impl.h"
#include "rows.h"
#include "store_change.h"
#include "attempt_file.h"
#include "attempt_lock.h"
#include "uuid.h"

/* --- keys that another host has made unknown ------------------------------ */

/* Keys looked at in one pass. */
#define LATE_MAX 100

struct late_key {
	struct record record;
	bool dead; /* its oncewrap */
};

struct late {
	struct store *s;
	int64_t after;
	int n;
	struct late_key key[LATE_MAX];
};

static void
late_free(struct late *l)
{
	for (int i = 0; i < l->n; i++)
		record_free(&l->key[i].record);
	l->n = 0;
}

static enum rc
run_late_rows(struct pg *pg, void *arg)
{
	struct late *l = arg;
	struct postgres_tx t;
	enum rc rc;

	late_free(l);
	postgres_tx_begin(&t, l->s, pg);
	pg_send(pg, PG_QUERY_RECOVER_LATE, "iii", l->s->host.number, l->after,
	    (int64_t)LATE_MAX);
	rc = pg_result(pg);
	while (rc == RC_OK && l->n < LATE_MAX) {
		rc = tx_record(&t.tx, &l->key[l->n].record);
		if (rc == RC_OK)
			l->n++;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Whether the oncewrap of the attempt is dead.  The file proves that it was
 * here, if it was made in this boot: a copy of the disk has older ones too. */
static bool
maker_is_dead(struct store *s, int64_t lock)
{
	struct attempt_lock_note note;

	return attempt_lock_read(s->base.local, lock, &note) == RC_OK &&
	    liveness_is_dead(s->liveness, note.owner) &&
	    (attempt_file_is_of_this_boot(lock) ||
		(!s->name_shared &&
		    postgres_host_held(s->liveness, note.owner)));
}

/* RC_LOST: another outcome was faster. */
static enum rc
late_release_run(struct tx *tx, void *arg)
{
	const struct record *late = arg;
	struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_change_read(tx, late->id, true, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	rc = r.state == late->state &&
		strcmp(r.late_token, late->late_token) == 0
	    ? step_recover(
		  &r, false, decide_requeue(r.attempt, uuid_bits()), tx->at, &s)
	    : RC_LOST;
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, &r, &s, NULL);
	record_free(&r);
	return rc;
}

/* The makers died before the list of processes is read. */
static enum rc
late_release(struct late *l, int limit, struct store_change *changes, int *n)
{
	struct process_list *processes = NULL;
	struct late_key *k;
	enum rc rc = RC_OK;

	for (int i = 0; i < l->n; i++)
		l->key[i].dead =
		    maker_is_dead(l->s, l->key[i].record.attempt_lock);
	(void)process_list(&processes);
	for (int i = 0; i < l->n && rc == RC_OK && *n < limit; i++) {
		k = &l->key[i];
		if (!k->dead ||
		    attempt_lock_lives(
			l->s->base.local, k->record.attempt_lock, processes))
			continue;
		rc = postgres_tx(l->s, TX_WRITE, late_release_run, &k->record);
		if (rc == RC_LOST) {
			rc = RC_OK;
		} else if (rc == RC_OK) {
			rows_change(&k->record, &changes[*n]);
			changes[*n].to = RECORD_FAILED_RETRYABLE;
			++*n;
		}
	}
	process_list_free(processes);
	return rc;
}

/*
 * Releases keys that another host has made unknown on a suspicion, if they may
 * be resumed, and this host knows more: their oncewrap is dead, and all
 * processes of the attempt have exited.  The changes are added to those that
 * are there.
 */
static enum rc
recover_late(struct store *s, int limit, struct store_change *changes, int *n)
{
	struct late *l;
	bool more = true;
	enum rc rc = RC_OK;

	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return RC_NOMEM;
	l->s = s;
	while (rc == RC_OK && more && *n < limit) {
		rc = txn_run(s->pool, TXN_LOOK, run_late_rows, l);
		more = l->n == LATE_MAX;
		if (rc == RC_OK && l->n > 0) {
			l->after = l->key[l->n - 1].record.id;
			rc = late_release(l, limit, changes, n);
		}
	}
	late_free(l);
	free(l);
	return rc;
}

/* --- all of it ------------------------------------------------------------ */

/* Only of an operator. */
static void
tell_no_file(struct store *s)
{
	char why[512];

	txn_message(s->pool, why, sizeof(why));
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
		rc = store_recover_leases(s, limit, changes, n);
	if (rc == RC_OK)
		rc = postgres_owners_remove(s);
	if (rc == RC_OK && liveness != NULL)
		rc = recover_late(s, limit, changes, n);
	/* Keys recovered above no longer name their attempts. */
	if (rc == RC_OK && liveness != NULL)
		rc = store_attempt_clean(s);
	return rc == RC_OK ? postgres_measure(s) : rc;
}
