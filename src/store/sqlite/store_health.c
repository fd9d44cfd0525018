/*
 * Whether the store can do its work; and writes without a key: of the time, and
 * of whether commits are synced.
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>

#include "words.h"
#include "store_files.h"
#include "store_impl.h"

/* --- the time ------------------------------------------------------------- */

/* Written down for store time after a reboot; or for the sake of the commit. */
struct clock_write {
	struct write w;
	int64_t grain; /* ms: skipped if it was written less than that ago */
	bool sync_foreign; /* makes others' commits durable */
	bool lists;        /* does what a new key may have to do: see
			    * sqlite_list_recent() */
};

static enum rc
note_run(struct write *w, struct db *db, int64_t now)
{
	const struct clock_write *c = (struct clock_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_LAST);

	db_bindf(s, "ii", now, c->grain);
	return db_step_done(s);
}

static enum rc
touch_run(struct write *w, struct db *db, int64_t now)
{
	const struct clock_write *c = (struct clock_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_TOUCH);
	enum rc rc = c->lists ? sqlite_list_recent(db, 1) : RC_OK;

	if (rc != RC_OK)
		return rc;
	db_bindf(s, "i", now);
	if (c->sync_foreign)
		w->did |= WRITE_SYNC_FIRST;
	return db_step_done(s);
}

enum rc
store_clock_note(struct store *store, int64_t grain)
{
	struct clock_write c = { .w.run = note_run, .grain = grain };

	return committer_do(store->committer, &c.w);
}

enum rc
store_clock_touch(struct store *store)
{
	struct clock_write c = {
		.w.run = touch_run,
		.w.flags = WRITE_REFUSABLE,
		.lists = true,
	};

	return committer_do(store->committer, &c.w);
}

/* --- processes with another durability ------------------------------------ */

struct mix_write {
	struct write w;
	const struct liveness *liveness;
	bool full;
};

/* A process that starts meanwhile has its lock already, or sets the mark
 * later. */
static enum rc
mix_run(struct write *w, struct db *db, int64_t now)
{
	const struct mix_write *m = (struct mix_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_META_UNSYNCED_SET);

	(void)now;
	if (m->full && !liveness_is_alone(m->liveness))
		return RC_OK;
	db_bindf(s, "d", !m->full);
	w->did |= WRITE_SYNC_FIRST;
	return db_step_done(s);
}

/* With a reader that had that result.  RC_OK; *unsynced: others may have
 * committed what is not synced. */
static enum rc
read_mix_by(struct store *store, struct store_reader *reader, enum rc rc,
    bool *unsynced)
{
	if (rc != RC_OK)
		return rc;
	rc = db_onef(db_stmt(reader->db, QUERY_META_UNSYNCED), "?", unsynced);
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

static enum rc
read_mix(struct store *store, bool *unsynced)
{
	struct store_reader *reader;
	enum rc rc = store_reader_take(store, &reader);

	return read_mix_by(store, reader, rc, unsynced);
}

enum rc
store_clock_mix(struct store *store)
{
	struct mix_write m = { .w.run = mix_run, .full = store->full };
	struct liveness *liveness;
	bool unsynced;
	enum rc rc;

	rc = read_mix(store, &unsynced);
	if (rc != RC_OK || unsynced == !store->full)
		return rc;
	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	m.liveness = liveness;
	return committer_do(store->committer, &m.w);
}

enum rc
sqlite_make_durable(struct store *store, const struct record *record)
{
	struct clock_write c = {
		.w.run = touch_run,
		.w.flags = WRITE_REFUSABLE,
		.sync_foreign = true,
	};
	bool unsynced = true;
	enum rc rc = RC_OK;

	if (!store->full)
		return RC_OK;
	if (!record->unconfirmed)
		rc = read_mix(store, &unsynced);
	return rc == RC_OK && unsynced ? committer_do(store->committer, &c.w)
				       : rc;
}

bool
sqlite_is_durable(struct store *store, const struct record *record)
{
	struct store_reader *reader;
	bool unsynced = true;
	enum rc rc;

	if (!store->full || record->unconfirmed)
		return !store->full;
	rc = store_reader_glance(store, &reader);
	return read_mix_by(store, reader, rc, &unsynced) == RC_OK && !unsynced;
}

/* --- health --------------------------------------------------------------- */

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

	if (store_files_check(store->file, STORE_FILES_DAEMON, &bar))
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
	if (!h.locked &&
	    (h.last != RC_OK || h.closed != RC_OK ||
		atomic_load(&store->damaged))) {
		if (store_clock_touch(store) == RC_OK)
			atomic_store(&store->damaged, false);
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

bool
sqlite_health(struct store *store, char *why, size_t size)
{
	return is_in_place(store, why, size) && can_read(store, why, size) &&
	    can_write(store, why, size) &&
	    store_attempt_check(store, why, size);
}
