/*
 * Whether the store can do its work.
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>

#include "words.h"
#include "store_files.h"
#include "store_impl.h"

static bool
is_in_place(struct store *store, char *why, size_t size)
{
	if (store_guard_check(&store->guard) == RC_OK)
		return true;
	store_guard_why(&store->guard, why, size);
	return false;
}

/* Names the file that may not be used, if there is one, and the cure. */
static void
say_failed(const struct store *store, const char *what, enum rc rc, char *why,
    size_t size)
{
	struct store_files_bar bar;

	if (store_files_check(store->file, STORE_FILES_KEEP, &bar))
		snprintf(why, size, "the database %s cannot be %s: %s",
		    store->file, what, rc_text(rc));
	else
		snprintf(why, size, "the database cannot be %s: %s: %s", what,
		    bar.file, bar.cure);
}

static bool
can_read(struct store *store, char *why, size_t size)
{
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc == RC_OK) {
		rc = db_onef(db_stmt(reader->db, QUERY_META_SECRET), "-");
		store_reader_give(store, reader);
	}
	if (rc != RC_OK)
		say_failed(store, "read", rc, why, size);
	return rc == RC_OK;
}

/*
 * A write is tried only if the last one failed.  So health checks cost a
 * healthy store no write, and an idle store is found healthy again.
 */
static bool
can_write(struct store *store, char *why, size_t size)
{
	struct committer_health h;

	committer_health(store->committer, &h);
	if (!h.locked && (h.last != RC_OK || h.closed != RC_OK)) {
		(void)store_clock_touch(store);
		committer_health(store->committer, &h);
	}
	if (h.last == RC_WENT_BACK || h.last == RC_REPLACED)
		store_guard_why(&store->guard, why, size);
	else if (h.locked)
		snprintf(why, size, "another process holds the write lock");
	else if (h.closed == RC_UNRECORDED)
		snprintf(why, size, "%u %s not recorded yet; nothing new runs",
		    h.unrecorded,
		    PLURAL(h.unrecorded, "outcome is", "outcomes are"));
	else if (h.last != RC_OK)
		say_failed(store, "written", h.last, why, size);
	else if (h.closed == RC_LIMIT)
		snprintf(
		    why, size, "the write-ahead log is longer than max_wal");
	else if (h.closed != RC_OK)
		snprintf(why, size, "the disk of %s has no space for new keys",
		    store->file);
	else
		return true;
	return false;
}

/* Only routes with on_crash = resume or a reconciler need these files. */
static bool
can_begin(struct store *store, char *why, size_t size)
{
	enum rc rc = store_attempt_check(store);

	if (rc != RC_OK)
		snprintf(why, size,
		    "no file for an attempt can be made in %s-attempts: %s; "
		    "nothing that may be resumed or reconciled runs",
		    store->file, rc_text(rc));
	return rc == RC_OK;
}

bool
sqlite_health(struct store *store, char *why, size_t size)
{
	return is_in_place(store, why, size) && can_read(store, why, size) &&
	    can_write(store, why, size) && can_begin(store, why, size);
}
