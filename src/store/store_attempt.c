/*
 * What identifies the processes of an attempt: files of this host, whatever the
 * store.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "store_ops.h"
#include "attempt_file.h"
#include "attempt_lock.h"
#include "uuid.h"

/* What the names of the files begin with. */
static const char *
file_prefix(const struct store *store)
{
	return store_base_of(store)->local;
}

bool
store_attempt_check(struct store *store, char *why, size_t size)
{
	struct store_attempt at = { 0 };
	enum rc rc = (enum rc)atomic_load(&store_base(store)->attempts);

	if (rc == RC_OK)
		return true;
	if ((rc = store_attempt_lock(store, &at)) == RC_OK)
		attempt_lock_remove(file_prefix(store), at.lock);
	store_attempt_release(&at);
	if (rc != RC_OK)
		snprintf(why, size,
		    "no file for an attempt can be made in %s-attempts: %s; "
		    "nothing that may be resumed or reconciled runs",
		    file_prefix(store), rc_text(rc));
	return rc == RC_OK;
}

/* token: that of a process that stays, or NULL. */
static enum rc
attempt_make(struct store *store, struct store_attempt *at, const char *token)
{
	struct liveness *liveness;
	int64_t owner;
	enum rc rc;

	at->fd = at->note = -1;
	if ((rc = store_liveness(store, &liveness)) != RC_OK)
		return rc;
	at->file = store_base(store)->host;
	owner = liveness_self(liveness);
	rc = token == NULL ? attempt_lock_new(file_prefix(store), owner,
				 &at->fd, &at->note, &at->lock)
			   : attempt_lock_process_new(file_prefix(store), owner,
				 token, &at->fd, &at->note, &at->lock);
	/* for store_health() */
	atomic_store(&store_base(store)->attempts, (int)rc);
	return rc;
}

enum rc
store_attempt_lock(struct store *store, struct store_attempt *at)
{
	enum rc rc = attempt_make(store, at, NULL);

	FAULT(ATTEMPT_MADE);
	return rc;
}

enum rc
store_attempt_begin(struct store_attempt *at, const char *token, int64_t key_id)
{
	enum rc rc = RC_OK;

	if (at->note != -1)
		rc = attempt_lock_begin(at->note, token, key_id);
	FAULT(ATTEMPT_NAMED);
	return rc;
}

void
store_attempt_started(struct store_attempt *at, pid_t pid)
{
	if (at->note == -1)
		return;
	attempt_lock_started(at->note, pid);
	close(at->note);
	at->note = -1;
}

enum rc
store_process_lock(struct store *store, struct store_attempt *at,
    char token[RECORD_TOKEN_LEN + 1])
{
	uuid_digits(token);
	return attempt_make(store, at, token);
}

void
store_process_forget(struct store *store, int64_t lock)
{
	attempt_file_remove(file_prefix(store), lock, ATTEMPT_FILE_PROCESS);
}

enum rc
store_attempt_by(struct store *store, struct store_attempt *at, int64_t lock)
{
	enum rc rc =
	    attempt_lock_process_acts(file_prefix(store), at->lock, lock);

	if (at->note != -1)
		close(at->note);
	at->note = -1;
	return rc;
}

void
store_attempt_by_none(struct store *store, const struct store_attempt *at)
{
	attempt_file_remove(file_prefix(store), at->lock, ATTEMPT_FILE_BY);
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
	struct liveness *liveness;
	bool gone;

	/* Of another host's processes nothing is known here. */
	if (store_liveness(store, &liveness) != RC_OK ||
	    at->file != store_base(store)->host)
		return false;
	/* Usually a process still holds the lock, and that is a cheap test. */
	if (attempt_lock_is_held(file_prefix(store), at->lock))
		return false;
	if (process_list(&list) != RC_OK)
		return false;
	gone = !attempt_lock_lives(file_prefix(store), at->lock, list);
	process_list_free(list);
	return gone;
}

pid_t
store_attempt_process(struct store *store, const struct store_attempt *at)
{
	struct process_list *list;
	struct liveness *liveness;
	pid_t pid;

	if (store_liveness(store, &liveness) != RC_OK ||
	    at->file != store_base(store)->host || process_list(&list) != RC_OK)
		return 0;
	pid = attempt_lock_process(file_prefix(store), at->lock, list);
	process_list_free(list);
	return pid;
}

void
store_attempt_forget(struct store *store, const struct store_attempt *at)
{
	attempt_lock_remove(file_prefix(store), at->lock);
}

/* --- files that are left over --------------------------------------------- */

struct leftovers {
	const struct store_base *base;
	const struct liveness *liveness;
	struct tx *tx;
};

/* Removes a file that no record names.  That of a living process is left to
 * that process, which may be about to name it, or may have it for another
 * store: for one that was restored, under the same name, on another server. */
static enum rc
remove_attempt(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	const struct leftovers *l = arg;
	const bool mine = note->owner == liveness_self(l->liveness);
	enum rc rc;

	if (!mine && !liveness_is_dead(l->liveness, note->owner))
		return RC_OK;
	if (note->token[0] != '\0')
		tx_send(l->tx, TX_ATTEMPT_OF_KEY, "iii", note->key, name,
		    l->base->host);
	else if (!mine)
		tx_send(l->tx, TX_ATTEMPT_OF_OWNER, "i", note->owner);
	else
		return RC_OK;
	rc = tx_one(l->tx, "-");
	if (rc != RC_NOTFOUND)
		return rc;
	attempt_lock_remove(l->base->local, name);
	FAULT(ATTEMPT_SWEPT);
	return RC_OK;
}

/* Removes the file of a process that died with its owner.  An attempt that it
 * acted for has a name of its own for the file. */
static enum rc
remove_process(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	const struct leftovers *l = arg;

	if (liveness_is_dead(l->liveness, note->owner))
		attempt_file_remove(l->base->local, name, ATTEMPT_FILE_PROCESS);
	return RC_OK;
}

static enum rc
clean_run(struct tx *tx, void *arg)
{
	struct leftovers *l = arg;

	l->tx = tx;
	return attempt_lock_each(l->base->local, "", remove_attempt, l);
}

enum rc
store_attempt_clean(struct store *store)
{
	struct leftovers l = { .base = store_base(store) };
	struct liveness *liveness;
	enum rc rc = store_liveness(store, &liveness);

	if (rc != RC_OK)
		return rc;
	l.liveness = liveness;
	rc = store_tx(store, TX_LOOK, clean_run, &l);
	return rc == RC_OK ? attempt_lock_each(l.base->local,
				 ATTEMPT_FILE_PROCESS, remove_process, &l)
			   : rc;
}
