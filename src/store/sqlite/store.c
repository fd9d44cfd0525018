/*
 * The key store on SQLite: opening it, and its leases.
 *
 * Code here does not know HTTP, handlers, or why a key has its state.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "schema.h"
#include "store_impl.h"

/* --- opening ------------------------------------------------------------ */

/* Store time is not further away than this (ms), so that sums with it do not
 * overflow. */
#define FARTHEST (ROW_TIME_MAX / 2)

struct clock_row {
	bool same_boot;
	int64_t shift, last;
};

static enum rc
store_read_clock(struct db *db, const char *boot_id, struct clock_row *row)
{
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_GET);
	const char *text = NULL;
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	rc = db_rowf(s, "pim", &text, &row->shift, &row->last);
	row->same_boot = text != NULL && strcmp(text, boot_id) == 0;
	db_reset(s);
	if (rc != RC_OK)
		return rc;
	return row->last >= 0 && row->last <= FARTHEST &&
		row->shift >= -FARTHEST && row->shift <= FARTHEST
	    ? RC_OK
	    : RC_CORRUPT;
}

/*
 * Whether the row's shift still holds.  It does not after a reboot, nor if the
 * time since boot went back although the boot's name is the same, as in a
 * restored virtual machine.
 *
 * A boot has several names where containers have their own.  So while another
 * process has the store open, the shift holds whatever this one calls the boot.
 *
 * If the boot's name cannot be read (""), the second rule alone ensures that no
 * key ends early: if the host has been up for longer than when it was last
 * seen, more time has passed than the difference.
 */
static bool
clock_holds(const struct clock_row *row, bool alone)
{
	return (row->same_boot || !alone) &&
	    clock_boot() + row->shift >= row->last;
}

/* Continues store time from where it was last seen.  begun: the result of
 * beginning a transaction, without which nothing is moved. */
static enum rc
set_clock(struct store *store, enum rc begun, bool *moved)
{
	const bool alone =
	    store->liveness == NULL || liveness_is_alone(store->liveness);
	char boot_id[CLOCK_BOOT_ID_LEN + 1];
	struct db *db = store->writer;
	struct clock_row row = { 0 };
	struct db_stmt *s;
	enum rc rc;

	*moved = false;
	(void)clock_boot_id(boot_id);
	rc = store_read_clock(db, boot_id, &row);
	store->base.ahead = row.shift;
	if (rc != RC_OK || clock_holds(&row, alone))
		return rc;
	if (begun != RC_OK)
		return begun;
	*moved = true;
	store->base.ahead = row.last - clock_boot();
	s = db_stmt(db, QUERY_CLOCK_SHIFT);
	db_bindf(s, "si", boot_id, store->base.ahead);
	return db_step_done(s);
}

/*
 * Writes the time, so that this database differs from every earlier copy of
 * itself and a copy put in its place is noticed.  Mends the count of the
 * bytes of stored requests, which may have been planted.  The guard reads
 * before: if the COMMIT fails, it must not miss what was written here.
 */
static enum rc
leave_mark(struct store *store)
{
	struct db_stmt *s = db_stmt(store->writer, QUERY_CLOCK_TOUCH);
	enum rc rc;

	db_bindf(s, "i", store_now(store));
	if ((rc = store_guard_past(&store->guard, store->writer)) != RC_OK ||
	    (rc = store_guard_seal(&store->guard, store->writer, true)) !=
		RC_OK ||
	    (rc = db_step_done(s)) != RC_OK)
		return rc;
	return db_step_done(db_stmt(store->writer, QUERY_KEPT_MEND));
}

/*
 * A process takes its lock in the transaction in which it sets the clock, so
 * the next process sees the lock.  If the disk is full, or another process
 * keeps the database locked, the mark is not left, and the guard relies on what
 * it has read so far.  A file that may not be written is an error.
 */
static enum rc
start_clock(struct store *store)
{
	struct db *db = store->writer;
	struct liveness *liveness;
	enum rc rc, begun = RC_BUSY;
	bool moved;

	/* An operator's process usually leaves no trace. */
	if (!store->daemon && (rc = set_clock(store, begun, &moved)) != begun)
		return rc;
	begun = db_begin(db);
	if (begun == RC_READONLY)
		return begun;
	if ((rc = sqlite_liveness(store, &liveness)) == RC_OK)
		rc = set_clock(store, begun, &moved);
	if (rc == RC_OK && begun == RC_OK) {
		rc = store->daemon ? leave_mark(store) : RC_OK;
		if (rc == RC_OK)
			rc = db_commit(db);
		store->distrusted = rc == RC_IO;
		if (rc != RC_OK && rc != RC_READONLY && !moved) {
			db_rollback(db);
			return RC_OK;
		}
	}
	if (rc != RC_OK)
		db_rollback(db);
	return rc;
}

static enum rc
start_guard(struct store *store)
{
	struct db *db = store->writer;
	enum rc rc;

	if ((rc = start_clock(store)) != RC_OK)
		return rc;
	/* The seal is in the file from now on, unless others read. */
	if (store->daemon && db_checkpoint(db, false) == RC_IO)
		store->distrusted = true;
	if ((rc = db_begin_read(db)) == RC_OK)
		rc = store_guard_past(&store->guard, db);
	if (rc == RC_OK)
		rc = store_guard_file(&store->guard, db);
	db_rollback(db);
	return rc;
}

/* A sentence about a failure of store_start(); table is NULL unless its only
 * row is the reason. */
static void
explain_start(
    char *err, size_t errsize, const char *file, const char *table, enum rc rc)
{
	if (rc == RC_WENT_BACK)
		snprintf(err, errsize,
		    "database %s: is older than its log, %s-wal: a copy was "
		    "put over it.  Put back what belongs to the log.  Or end "
		    "all processes that use it and remove %s-wal and %s-shm, "
		    "to go on with the copy: later keys are forgotten, and "
		    "may run again",
		    file, file, file, file);
	else if (table == NULL || rc != RC_CORRUPT)
		snprintf(err, errsize, "database %s: %s", file, rc_text(rc));
	else
		snprintf(err, errsize,
		    "database %s: the row of table %s is missing or makes no "
		    "sense: put a backup in its place, or see \"A damaged "
		    "row\" "
		    "in oncewrap(8)",
		    file, table);
}

static enum rc
store_start(
    struct store *store, const struct store_options *o, const char **table)
{
	struct committer_options co;
	enum rc rc;

	store->file = strdup(db_file(store->writer));
	if (store->file == NULL)
		return RC_NOMEM;
	store->base.local = store->file;
	store->base.database = store->base.file = store->file;
	store->base.secret = store->guard.secret;
	store->mode = o->mode;
	store->daemon = o->create;
	store->full = o->durability == CONF_DURABILITY_FULL;
	store->busy_timeout = o->busy_timeout;
	*table = "once_meta";
	if ((rc = store_guard_init(&store->guard, store->file)) != RC_OK ||
	    (rc = store_guard_fits(&store->guard, store->writer)) != RC_OK)
		return rc;
	identity_seed_make(&store->seed, store->guard.secret);
	/* A process that makes no keys may look at what is there. */
	if (o->create &&
	    (rc = store_guard_secret(store->writer, &store->seed)) != RC_OK)
		return rc;
	*table = "once_clock";
	if ((rc = start_guard(store)) != RC_OK)
		return rc;
	*table = NULL;
	if (o->create)
		store_warn_of_folder(store);
	/* For changes that a handler moved into the file unsynced, and that an
	 * earlier process did not see. */
	if (o->create && (rc = db_sync_foreign_commits(store->writer)) != RC_OK)
		return rc;
	store->share.base = &store->base;
	memset(&co, 0, sizeof(co));
	co.db = store->writer;
	co.share = &store->share;
	co.guard = &store->guard;
	co.news = store->base.news;
	co.shift = store->base.ahead;
	co.busy_timeout = o->busy_timeout;
	co.max_wal = o->max_wal;
	co.distrusted = store->distrusted;
	return committer_start(&store->committer, &co);
}

enum rc
sqlite_open(struct store **out, const struct store_options *o, char *err,
    size_t errsize)
{
	const char *table = NULL;
	struct schema_options mo;
	struct store *store;
	enum rc rc;

	*out = NULL;
	store = calloc(1, sizeof(*store));
	if (store == NULL) {
		snprintf(err, errsize, "database %s: %s", o->database,
		    rc_text(RC_NOMEM));
		return RC_NOMEM;
	}
	store->base.ops = &sqlite_ops;
	lock_init(&store->lock, LOCK_STORE);
	store->base.news = store_news_open();
	store->base.lock = &store->lock;
	memset(&mo, 0, sizeof(mo));
	mo.file = o->database;
	mo.mode = o->mode;
	mo.create = o->create;
	mo.full = o->durability == CONF_DURABILITY_FULL;
	mo.busy_timeout = o->busy_timeout;
	rc = schema_open(&store->writer, &mo, err, errsize);
	if (rc == RC_OK) {
		rc = store_start(store, o, &table);
		if (rc != RC_OK)
			explain_start(err, errsize, o->database, table, rc);
	}
	if (rc != RC_OK) {
		sqlite_close(store);
		return rc;
	}
	*out = store;
	return RC_OK;
}

void
sqlite_close(struct store *store)
{
	/* An operator's process, which only reads, leaves no trace. */
	if (store->committer != NULL && store->daemon)
		(void)store_clock_note(store, 0);
	committer_stop(store->committer);
	/* Its pages would make a mixture of a file that was copied there.  A
	 * start that failed moves nothing. */
	if (store->writer != NULL &&
	    (store->committer == NULL || atomic_load(&store->guard.went_back)))
		db_keep_log(store->writer);
	store_reader_close_all(store);
	liveness_close(store->liveness);
	db_close(store->writer);
	store_guard_free(&store->guard);
	if (store->base.news != -1)
		close(store->base.news);
	lock_destroy(&store->lock);
	free(store->file);
	free(store);
}

const char *
sqlite_why(struct store *store, enum rc rc, char *out, size_t size)
{
	(void)store;
	snprintf(out, size, "%s", rc_text(rc));
	return out;
}

enum rc
sqlite_liveness(struct store *store, struct liveness **out)
{
	enum rc rc = RC_OK;

	/* Each request comes here, and takes no lock. */
	*out = atomic_load(&store->liveness);
	if (*out != NULL)
		return RC_OK;
	lock_take(&store->lock);
	*out = atomic_load(&store->liveness);
	if (*out == NULL) {
		/* A process that can open the file can lock it, so only its
		 * owner may. */
		rc = liveness_open(out, store->file, 0600);
		if (rc == RC_OK) {
			store->base.host = liveness_file(*out);
			store_guard_add_lock(&store->guard);
			atomic_store(&store->liveness, *out);
		}
	}
	lock_give(&store->lock);
	return rc;
}
