/*
 * The key store, for attempts: what identifies their processes, and which of
 * their owners are dead.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "leader.h"
#include "log.h"
#include "store_impl.h"
#include "tree.h"
#include "verb.h"

/* --- the processes of an attempt ----------------------------------------- */

/* Remembers the result for health. */
static enum rc
made(struct store *store, enum rc rc)
{
	lock_take(&store->lock);
	store->attempts = rc;
	lock_give(&store->lock);
	return rc;
}

enum rc
store_attempt_check(struct store *store)
{
	struct store_attempt at;
	enum rc rc;

	lock_take(&store->lock);
	rc = store->attempts;
	lock_give(&store->lock);
	if (rc == RC_OK)
		return rc;
	memset(&at, 0, sizeof(at));
	if ((rc = store_attempt_lock(store, &at)) == RC_OK)
		tree_remove(store->file, at.lock);
	store_attempt_release(&at);
	return rc;
}

enum rc
store_attempt_lock(struct store *store, struct store_attempt *at)
{
	struct liveness *liveness;
	enum rc rc;

	leader_yield(); /* it makes a file */
	at->fd = at->note = -1;
	if ((rc = store_liveness(store, &liveness)) != RC_OK)
		return rc;
	at->file = liveness_file(liveness);
	rc = tree_new(store->file, liveness_self(liveness), &at->fd, &at->note,
	    &at->lock);
	FAULT(ATTEMPT_MADE);
	return made(store, rc);
}

enum rc
store_attempt_begin(struct store_attempt *at, const char *token, int64_t key_id)
{
	enum rc rc = RC_OK;

	if (at->note != -1)
		rc = tree_begin(at->note, token, key_id);
	FAULT(ATTEMPT_NAMED);
	return rc;
}

void
store_attempt_started(struct store_attempt *at, pid_t pid)
{
	if (at->note == -1)
		return;
	tree_started(at->note, pid);
	close(at->note);
	at->note = -1;
}

enum rc
store_process_lock(struct store *store, struct store_attempt *at,
    char token[RECORD_TOKEN_LEN + 1])
{
	struct liveness *liveness;
	enum rc rc;

	at->fd = at->note = -1;
	if ((rc = store_liveness(store, &liveness)) != RC_OK)
		return rc;
	at->file = liveness_file(liveness);
	if (!verb_token(token))
		return RC_IO;
	rc = tree_process_new(store->file, liveness_self(liveness), token,
	    &at->fd, &at->note, &at->lock);
	return made(store, rc);
}

void
store_process_forget(struct store *store, int64_t lock)
{
	tree_process_remove(store->file, lock);
}

enum rc
store_attempt_by(struct store *store, struct store_attempt *at, int64_t lock)
{
	enum rc rc = tree_process_acts(store->file, at->lock, lock);

	if (at->note != -1)
		close(at->note);
	at->note = -1;
	return rc;
}

void
store_attempt_by_none(struct store *store, const struct store_attempt *at)
{
	tree_process_acted(store->file, at->lock);
}

void
store_attempt_release(struct store_attempt *at)
{
	if (at->fd != -1)
		close(at->fd);
	if (at->note != -1)
		close(at->note);
	at->fd = at->note = -1;
}

bool
store_attempt_gone(struct store *store, const struct store_attempt *at)
{
	struct process_list *list;
	bool gone;

	/* Usually a process still holds the lock, and that is a cheap test. */
	if (!tree_is_past(at->lock) && tree_is_held(store->file, at->lock))
		return false;
	if (process_list(&list) != RC_OK)
		return false;
	gone = !tree_lives(store->file, at->lock, list);
	process_list_free(list);
	return gone;
}

void
store_attempt_forget(struct store *store, const struct store_attempt *at)
{
	tree_remove(store->file, at->lock);
}

struct leftover {
	struct store *store;
	struct db *db;
};

/* Removes a file that no record names.  A file of an attempt without a started
 * handler may be about to be named as long as its owner lives. */
static enum rc
remove_leftover(void *arg, int64_t name, const struct tree_note *note)
{
	struct leftover *left = arg;
	struct db_stmt *s;
	enum rc rc;

	if (note->token[0] != '\0') {
		s = db_stmt(left->db, QUERY_ATTEMPT_OF_KEY);
		db_bindf(s, "ii", note->key, name);
	} else {
		if (!store_owner_is_dead(left->store, note->owner))
			return RC_OK;
		s = db_stmt(left->db, QUERY_ATTEMPT_OF_OWNER);
		db_bindf(s, "i", note->owner);
	}
	rc = db_onef(s, "-");
	if (rc != RC_NOTFOUND)
		return rc;
	tree_remove(left->store->file, name);
	FAULT(ATTEMPT_SWEPT);
	return RC_OK;
}

/* Removes the file of a process that died with its owner.  An attempt that it
 * acted for has a name of its own for the file. */
static enum rc
remove_process(void *arg, int64_t name, const struct tree_note *note)
{
	struct store *store = arg;

	if (store_owner_is_dead(store, note->owner))
		tree_process_remove(store->file, name);
	return RC_OK;
}

enum rc
store_attempt_clean(struct store *store)
{
	struct store_reader *reader;
	struct leftover left;
	enum rc rc;

	if ((rc = store_reader_take(store, &reader)) != RC_OK)
		return rc;
	left.store = store;
	left.db = reader->db;
	rc = tree_each(store->file, remove_leftover, &left);
	store_reader_give(store, reader);
	if (rc == RC_OK)
		rc = tree_process_each(store->file, remove_process, store);
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
store_dead_owners(
    struct store *store, int64_t after, int64_t *dead, size_t max, size_t *n)
{
	struct liveness *liveness;
	struct store_reader *reader;
	int64_t owner = after;
	enum rc rc;
	bool alive;

	*n = 0;
	rc = store_liveness(store, &liveness);
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
			dead[(*n)++] = owner;
	}
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

bool
store_owner_is_dead(struct store *store, int64_t owner)
{
	struct liveness *liveness;
	bool alive = true;

	return owner > 0 && store_liveness(store, &liveness) == RC_OK &&
	    liveness_alive(liveness, owner, &alive) == RC_OK && !alive;
}
