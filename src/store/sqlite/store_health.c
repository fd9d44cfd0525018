/*
 * Whether the store can do its work, and findings for an operator; and writes
 * of the time, which have no key.
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "words.h"
#include "schema.h"
#include "store_doctor.h"
#include "store_files.h"
#include "store_impl.h"

/* --- the time ------------------------------------------------------------- */

/* Written down for store time after a reboot, unless that was done less than
 * *arg (ms) ago. */
static enum rc
note_run(struct tx *tx, void *arg)
{
	struct db_stmt *s = db_stmt(sqlite_tx_db(tx), QUERY_CLOCK_LAST);

	db_bindf(s, "ii", tx->at.now, *(int64_t *)arg);
	return db_step_done(s);
}

/* Written down in any case, for the sake of the commit.  arg: what it is to
 * have done, or NULL. */
static enum rc
touch_run(struct tx *tx, void *arg)
{
	struct db_stmt *s = db_stmt(sqlite_tx_db(tx), QUERY_CLOCK_TOUCH);

	if (arg != NULL)
		tx->did |= *(unsigned *)arg;
	db_bindf(s, "i", tx->at.now);
	return db_step_done(s);
}

enum rc
store_clock_note(struct store *store, int64_t grain)
{
	return sqlite_tx(store, TX_WRITE | TX_WHOLE, note_run, &grain);
}

enum rc
sqlite_make_durable(struct store *store, const struct record *record)
{
	unsigned did = TX_SYNC_FIRST;

	return sqlite_is_durable(store, record)
	    ? RC_OK
	    : sqlite_tx(
		  store, TX_WRITE | TX_WHOLE | TX_REFUSABLE, touch_run, &did);
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
explain_failed(const struct store *store, const char *what, enum rc rc,
    char *why, size_t size)
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
		rc = db_onef(db_stmt(reader->db, QUERY_META_BASE), "--");
		store_reader_give(store, reader);
	}
	if (rc != RC_OK)
		explain_failed(store, "read", rc, why, size);
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
		/* Does what a new key may have to do. */
		if (sqlite_tx(store,
			TX_WRITE | TX_WHOLE | TX_REFUSABLE | TX_SEARCHES,
			touch_run, NULL) == RC_OK)
			atomic_store(&store->damaged, false);
		committer_health(store->committer, &h);
	}
	if (h.last == RC_WENT_BACK || h.last == RC_REPLACED)
		store_guard_why(&store->guard, why, size);
	else if (h.locked)
		snprintf(why, size, "another process %s",
		    h.distrusted ? "reads the write-ahead log, which is to "
				   "begin anew because a sync has failed"
				 : "holds the write lock");
	else if (h.closed == RC_UNRECORDED)
		snprintf(why, size, "%u %s not recorded yet; nothing new runs",
		    h.unrecorded,
		    PLURAL(h.unrecorded, "outcome is", "outcomes are"));
	else if (h.last != RC_OK)
		explain_failed(store, "written", h.last, why, size);
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

/* --- findings, for an operator -------------------------------------------- */

static void
check_integrity(struct db *db, struct findings *f)
{
	char *text = NULL;
	enum rc rc = db_onef(db_stmt(db, QUERY_INTEGRITY), "s", &text);

	if (text != NULL && strcmp(text, "ok") == 0)
		store_doctor_add(
		    f, "integrity", true, "pages, rows and indexes agree");
	else
		store_doctor_add(f, "integrity", false, "%s",
		    text != NULL      ? text
			: rc != RC_OK ? rc_text(rc)
				      : "no answer");
	free(text);
}

/* Names that a statement finds, which are wrong. */
static const struct named {
	const char *name;
	enum query query;
	const char *wrong, *none;
} named[] = {
	{ "schema", QUERY_MISSING_PARTS, "without ", "complete" },
	{ "foreign", QUERY_FOREIGN_PARTS,
	    "of others, whose triggers do not run in oncewrap, on our tables: ",
	    "nothing of others is on our tables" },
};

static void
check_named(struct db *db, const struct named *n, struct findings *f)
{
	char *names = NULL;
	int64_t count;

	if (db_onef(db_stmt(db, n->query), "is", &count, &names) != RC_OK)
		store_doctor_add(f, n->name, false, "cannot be read");
	else
		store_doctor_add(f, n->name, count == 0, "%s%s",
		    count == 0 ? n->none : n->wrong,
		    names != NULL ? names : "");
	free(names);
}

static void
check_mode(struct store *store, struct findings *f)
{
	struct stat st;
	bool safe;

	if (stat(store->file, &st) == -1)
		return;
	safe = (st.st_mode & 07) == 0;
	store_doctor_add(f, "file", safe, "mode %04o%s",
	    (unsigned)st.st_mode & 07777,
	    safe ? "" : ": answers can be read by anyone");
}

/* Whether other users can rename or remove the store's files: they may write
 * the folder, and its sticky bit is not set.  Or the bit keeps those that share
 * the database from its files.  text gets the cure. */
static bool
folder_is_wrong(const struct store *store, char *text, size_t size)
{
	const char *folder = store->guard.folder;
	struct stat st, file;

	if (stat(folder, &st) == -1 || (st.st_mode & 022) == 0)
		return false;
	if ((st.st_mode & S_ISVTX) == 0)
		snprintf(text, size,
		    "mode %04o of %s lets other users rename and remove the "
		    "database, its log and the files of attempts: chmod +t",
		    (unsigned)st.st_mode & 07777, folder);
	else if (stat(store->file, &file) == 0 && (file.st_mode & 020) != 0 &&
	    store_files_are_protected(&st, &file, (uid_t)-1))
		snprintf(text, size,
		    "mode %04o of %s and the sysctl fs.protected_regular keep "
		    "other users from the database: chown the folder to its "
		    "owner",
		    (unsigned)st.st_mode & 07777, folder);
	else
		return false;
	return true;
}

static void
doctor_check_folder(struct store *store, struct findings *f)
{
	char text[256] = "no other user can rename or remove files in it";
	const bool wrong = folder_is_wrong(store, text, sizeof(text));

	store_doctor_add(f, "folder", !wrong, "%s", text);
}

void
store_warn_of_folder(const struct store *store)
{
	char text[256];

	if (folder_is_wrong(store, text, sizeof(text)))
		log_event(LOG_WARN, "store-folder", NULL,
		    LOG_S("database", store->file), LOG_S("message", text));
}

enum rc
sqlite_examine(struct store *store, struct findings *f)
{
	struct store_reader *reader;
	int64_t dead;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	check_integrity(reader->db, f);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		check_named(reader->db, &named[i], f);
	store_reader_give(store, reader);
	rc = store_doctor_dead(store, &dead);
	store_doctor_leases(f, rc, dead);
	check_mode(store, f);
	doctor_check_folder(store, f);
	return RC_OK;
}
