/*
 * Recover: ends the leases of dead owners, by the on_crash of each key, and
 * their tries of effects.  Each run is bounded, because other writes wait for
 * the lock meanwhile.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "fault.h"
#include "liveness.h"
#include "log.h"
#include "uuid.h"
#include "sqlite_tx.h"
#include "store_effects.h"
#include "rows.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_recent.h"
#include "store_record.h"
#include "store_row.h"
#include "store_stage.h"
#include "attempt_lock.h"

/* A pass writes down the time last seen, but not more often than this (ms). */
#define CLOCK_GRAIN 30000

/* Dead owners recovered by one transaction, which takes some 5 ms. */
#define MAX_OWNERS 64

struct recover_write {
	struct write w;
	const struct liveness *liveness;
	const char *database;
	/* read after the owners died; NULL: it is not known which processes
	 * live */
	const struct process_list *processes;
	int64_t only; /* one attempt; 0: all */
	const int64_t *dead;
	size_t ndead;
	size_t from; /* begins at dead[from], after that row */
	int64_t from_id;
	size_t at; /* ended at dead[at], after that row; ndead: at the end */
	int64_t after;
	int limit, n;
	struct store_change *changes; /* room for limit */
	int effects;                  /* number freed, and due again */
};

/*
 * Whether processes of the attempt may still act; true if that cannot be
 * determined.  If the lock file was replaced, the owner may be alive after all.
 */
static bool
attempt_lock_may_live(const struct recover_write *r, const struct record *lost)
{
	return lost->lock_file != liveness_file(r->liveness) ||
	    attempt_lock_lives(r->database, lost->attempt_lock, r->processes);
}

/* The next attempt of that owner after r->after, which moves on; RC_NOTFOUND:
 * none. */
static enum rc
next_lost(struct recover_write *r, struct db *db, int64_t owner,
    struct record *lost, struct store_change *c)
{
	struct db_stmt *s =
	    db_stmt(db, r->only > 0 ? QUERY_RECOVER_KEY : QUERY_RECOVER_ROW);
	enum rc rc;

	db_bindf(s, "ii", owner, r->after);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	rc = store_row_read(s, lost);
	r->after = lost->id;
	db_reset(s);
	if (rc == RC_OK)
		rows_change(lost, c);
	return rc;
}

/* Changes the key of one lost attempt by its on_crash. */
static enum rc
settle_lost(struct recover_write *r, struct db *db, struct record *lost,
    enum record_state *to, int64_t now)
{
	const struct record was = *lost;
	const bool lives = !lost->unconfirmed && attempt_lock_may_live(r, lost);
	struct step s = { 0 };
	enum rc rc;

	rc = step_recover(lost, lives,
	    decide_requeue(lost->attempt, uuid_bits()), store_record_time(now),
	    &s);
	if (rc == RC_OK)
		rc = store_record_write(db, &was, lost, &s, NULL);
	if (rc == RC_OK)
		rc = store_kept_delete_pieces(db, was.id);
	if (s.confirmed)
		r->w.did |= WRITE_SYNC_FIRST;
	*to = lost->state;
	return rc;
}

/*
 * Recovers the attempts of an owner after r->after.  Reads one attempt at a
 * time, because the change of a row changes the index by which it was found.
 * *skipped counts the rows that stay as they are.  Returns RC_PENDING if the
 * transaction has to end before the owner's last attempt.
 */
static enum rc
recover_owner(struct recover_write *r, struct db *db, int64_t owner,
    int *skipped, int64_t now)
{
	struct store_change *c;
	struct record lost;
	int64_t *id = &r->after, before;
	enum rc rc;

	while (r->n < r->limit && *skipped < STORE_BAD_ROWS) {
		c = &r->changes[r->n];
		before = *id;
		rc = next_lost(r, db, owner, &lost, c);
		if (rc == RC_CORRUPT && *id != before) {
			store_row_bad(db, "once_key", *id);
			++*skipped;
			continue;
		}
		if (rc != RC_OK)
			return rc == RC_NOTFOUND ? RC_OK : rc;
		rc = r->only > 0 && *id != r->only
		    ? RC_NOTFOUND
		    : settle_lost(r, db, &lost, &c->to, now);
		record_free(&lost);
		if (rc != RC_OK)
			store_changes_free(c, 1);
		if (rc == RC_NOTFOUND)
			return RC_OK;
		if (rc == RC_BUSY) { /* later */
			++*skipped;
			continue;
		}
		if (rc != RC_OK)
			return rc == RC_LOST ? RC_CORRUPT : rc;
		r->n++;
		FAULT(RECOVER_KEY);
	}
	return RC_PENDING;
}

/* Their tries of effects. */
static enum rc
free_effects(struct recover_write *r, struct db *db, int64_t now)
{
	struct sqlite_tx t;
	enum rc rc = RC_OK;

	sqlite_tx_begin(&t, db, now);
	for (size_t i = 0; i < r->ndead && rc == RC_OK && r->only == 0; i++)
		rc = store_effects_free(&t.tx, r->dead[i], &r->effects);
	sqlite_tx_end(&t);
	return rc;
}

static enum rc
recover_run(struct write *w, struct db *db, int64_t now)
{
	struct recover_write *r = (struct recover_write *)w;
	enum rc rc = RC_OK;
	int skipped = 0;

	store_changes_free(r->changes, r->n);
	r->n = 0;
	r->effects = 0;
	r->after = r->only > 0 ? r->only - 1 : r->from_id;
	for (r->at = r->from; r->at < r->ndead; r->at++) {
		rc = recover_owner(r, db, r->dead[r->at], &skipped, now);
		if (rc != RC_OK)
			break;
		r->after = 0;
	}
	if (rc == RC_PENDING)
		rc = RC_OK;
	if (rc == RC_OK)
		rc = free_effects(r, db, now);
	if (r->n > 0)
		w->did |= WRITE_ENDED_KEY;
	if (r->n > 0 || r->effects > 0)
		w->did |= WRITE_MADE_WORK;
	return rc;
}

/* Recovers the attempts of those owners.  The owners are dead before the list
 * of processes is read, so none of them can start another process. */
static enum rc
recover_dead(struct store *store, struct recover_write *r, int *n)
{
	struct process_list *processes = NULL;
	struct liveness *liveness;
	enum rc rc;

	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	if (process_list(&processes) == RC_OK)
		r->processes = processes;
	r->liveness = liveness;
	r->database = store->file;
	rc = store_recent_do(store, &r->w);
	if (rc == RC_OK) {
		*n += r->n; /* the caller owns them now */
		if (r->effects > 0)
			log_event(LOG_WARN, "effects-freed", NULL,
			    LOG_I("n", r->effects));
	} else
		store_changes_free(r->changes, r->n);
	r->processes = NULL;
	process_list_free(processes);
	return rc;
}

/* Recovers the attempts of those owners, in several transactions if many rows
 * are skipped. */
static enum rc
recover_owners(struct store *store, const int64_t *dead, size_t ndead,
    int limit, struct store_change *changes, int *n)
{
	struct recover_write r = {
		.w.run = recover_run,
		.dead = dead,
		.ndead = ndead,
	};
	enum rc rc = RC_OK;

	while (rc == RC_OK && *n < limit && r.from < ndead) {
		r.limit = limit - *n;
		r.changes = changes + *n;
		r.n = 0;
		rc = recover_dead(store, &r, n);
		r.from = r.at;
		r.from_id = r.after;
	}
	return rc;
}

/* Recovers some owners at a time.  Rows that make no sense, or that have to
 * wait, stay; their owners do not hold up the owners after them. */
static enum rc
recover_all(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	int64_t dead[MAX_OWNERS], after = 0;
	size_t ndead = MAX_OWNERS;
	enum rc rc;

	while (*n < limit && ndead == MAX_OWNERS) {
		rc = store_dead_owners(store, after, dead, MAX_OWNERS, &ndead);
		if (store_recent_mend(store, rc))
			rc = store_dead_owners(
			    store, after, dead, MAX_OWNERS, &ndead);
		if (rc != RC_OK || ndead == 0)
			return rc;
		after = dead[ndead - 1];
		rc = recover_owners(store, dead, ndead, limit, changes, n);
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

enum rc
sqlite_recover(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	enum rc rc, clock;

	*n = 0;
	clock = store_clock_note(store, CLOCK_GRAIN);
	rc = recover_all(store, limit, changes, n);
	if (rc != RC_OK)
		return rc;
	if ((rc = store_stage_recover(store)) != RC_OK)
		return rc;
	/* Keys recovered above no longer name their attempts. */
	rc = store_attempt_clean(store);
	return rc != RC_OK ? rc : clock;
}

enum rc
sqlite_recover_key(struct store *store, int64_t id, int64_t owner,
    struct store_change *change, int *n)
{
	struct recover_write r = {
		.w.run = recover_run,
		.dead = &owner,
		.ndead = 1,
		.only = id,
		.limit = 1,
		.changes = change,
	};

	*n = 0;
	if (id <= 0 || !sqlite_owner_is_dead(store, owner))
		return RC_OK;
	return recover_dead(store, &r, n);
}
