/*
 * The key store, for recover: which owners are dead, and the files of attempts
 * that none needs any more.
 */
#include "config.h"

#include "fault.h"
#include "store_impl.h"
#include "store_body.h"
#include "attempt_lock.h"

/* A pass writes down the time last seen, but not more often than this (ms). */
#define CLOCK_GRAIN 30000

/* --- files ---------------------------------------------------------------- */

struct leftover {
	struct store *store;
	struct db *db;
};

/* Removes a file that no record names.  A file of an attempt without a started
 * handler may be about to be named as long as its owner lives. */
static enum rc
remove_leftover(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	struct leftover *left = arg;
	struct db_stmt *s;
	enum rc rc;

	if (note->token[0] != '\0') {
		s = db_stmt(left->db, QUERY_ATTEMPT_OF_KEY);
		db_bindf(s, "ii", note->key, name);
	} else {
		if (!store_is_dead(left->store, note->owner))
			return RC_OK;
		s = db_stmt(left->db, QUERY_ATTEMPT_OF_OWNER);
		db_bindf(s, "i", note->owner);
	}
	rc = db_onef(s, "-");
	if (rc != RC_NOTFOUND)
		return rc;
	attempt_lock_remove(left->store->file, name);
	FAULT(ATTEMPT_SWEPT);
	return RC_OK;
}

/* Removes the file of a process that died with its owner.  An attempt that it
 * acted for has a name of its own for the file. */
static enum rc
remove_process(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	struct store *store = arg;

	if (store_is_dead(store, note->owner))
		attempt_lock_process_remove(store->file, name);
	return RC_OK;
}

static enum rc
store_attempt_clean(struct store *store)
{
	struct store_reader *reader;
	struct leftover left;
	enum rc rc;

	if ((rc = store_reader_take(store, &reader)) != RC_OK)
		return rc;
	left.store = store;
	left.db = reader->db;
	rc = attempt_lock_each(store->file, remove_leftover, &left);
	store_reader_give(store, reader);
	if (rc == RC_OK)
		rc = attempt_lock_process_each(
		    store->file, remove_process, store);
	return rc;
}

/* --- dead owners --------------------------------------------------------- */

static enum rc
owner_after(struct db *db, enum query query, int64_t after, int64_t *owner)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "i", after);
	return db_onef(s, "i", owner);
}

/* The next owner of leases, or of effects that are being tried, after that one;
 * owners are ordered by their names. */
static enum rc
next_owner(struct db *db, int64_t *owner)
{
	int64_t of_key = INT64_MAX, of_effect = INT64_MAX;
	enum rc rc;

	rc = owner_after(db, QUERY_RECOVER_OWNER, *owner, &of_key);
	if (rc == RC_OK || rc == RC_NOTFOUND)
		rc = owner_after(db, QUERY_EFFECT_OWNER, *owner, &of_effect);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	*owner = of_key < of_effect ? of_key : of_effect;
	return *owner != INT64_MAX ? RC_OK : RC_NOTFOUND;
}

/* A dead owner stays dead, so this test need not be in the transaction that
 * recovers its attempts. */
enum rc
sqlite_lost_owners(struct store *store, int64_t after, struct store_gone *gone,
    size_t max, size_t *n)
{
	struct liveness *liveness;
	struct store_reader *reader;
	int64_t owner = after;
	enum rc rc;
	bool alive;

	*n = 0;
	rc = sqlite_liveness(store, &liveness);
	if (rc != RC_OK)
		return rc;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	while (*n < max && (rc = next_owner(reader->db, &owner)) == RC_OK) {
		rc = liveness_alive(liveness, owner, &alive);
		if (rc != RC_OK)
			break;
		if (!alive)
			gone[(*n)++] = (struct store_gone){ .id = owner };
	}
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

bool
store_is_dead(struct store *store, int64_t owner)
{
	struct liveness *liveness;
	bool alive = true;

	return owner > 0 && sqlite_liveness(store, &liveness) == RC_OK &&
	    liveness_alive(liveness, owner, &alive) == RC_OK && !alive;
}

bool
sqlite_owner_gone(struct store *store, int64_t owner, struct store_gone *gone)
{
	*gone = (struct store_gone){ .id = owner };
	return store_is_dead(store, owner);
}

enum rc
sqlite_recover(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	enum rc rc, clock;

	*n = 0;
	clock = store_clock_note(store, CLOCK_GRAIN);
	rc = store_recover_leases(store, limit, changes, n);
	if (rc == RC_OK)
		rc = store_body_recover(store);
	/* Keys recovered above no longer name their attempts. */
	if (rc == RC_OK)
		rc = store_attempt_clean(store);
	return rc != RC_OK ? rc : clock;
}
