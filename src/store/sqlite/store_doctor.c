/*
 * Findings about the key store, for an operator.
 */
#include "config.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "schema.h"
#include "store_files.h"
#include "store_impl.h"
#include "store_doctor.h"

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

static void
check_schema(struct db *db, struct findings *f)
{
	int64_t version, missing;
	char *names = NULL;

	if (db_pragma(db, "user_version", &version) != RC_OK)
		store_doctor_add(f, "schema", false, "cannot be read");
	else if (version != SCHEMA_VERSION)
		store_doctor_add(f, "schema", false,
		    "version %" PRId64 ", and this is for version %d", version,
		    SCHEMA_VERSION);
	else if (db_onef(db_stmt(db, QUERY_MISSING_PARTS), "is", &missing,
		     &names) != RC_OK)
		store_doctor_add(f, "schema", false, "cannot be read");
	else if (missing != 0)
		store_doctor_add(f, "schema", false,
		    "version %" PRId64 ", without %s", version,
		    names != NULL ? names : "some of it");
	else
		store_doctor_add(f, "schema", true,
		    "version %" PRId64 ", complete", version);
	free(names);
}

static void
check_foreign(struct db *db, struct findings *f)
{
	char *names = NULL;
	int64_t n;

	if (db_onef(db_stmt(db, QUERY_FOREIGN_PARTS), "is", &n, &names) !=
	    RC_OK)
		store_doctor_add(
		    f, "foreign", false, "the schema cannot be read");
	else if (n == 0)
		store_doctor_add(
		    f, "foreign", true, "nothing of others is on our tables");
	else
		store_doctor_add(f, "foreign", false,
		    "of others, on our tables: %s; triggers do not run in "
		    "oncewrap",
		    names != NULL ? names : "something");
	free(names);
}

static void
check_journal(struct db *db, struct findings *f)
{
	bool wal;

	if (db_is_wal(db, &wal) != RC_OK)
		store_doctor_add(
		    f, "journal", false, "its mode cannot be read");
	else if (!wal)
		store_doctor_add(f, "journal", false,
		    "not in WAL mode, as after VACUUM INTO: oncewrap puts it "
		    "into that when it starts");
	else
		store_doctor_add(f, "journal", true, "in WAL mode");
}

static void
check_mode(struct store *store, struct findings *f)
{
	struct stat st;

	if (stat(store->file, &st) == -1)
		store_doctor_add(
		    f, "file", false, "%s is not there any more", store->file);
	else if ((st.st_mode & 07) != 0)
		store_doctor_add(f, "file", false,
		    "mode %04o: answers can be read by anyone",
		    (unsigned)st.st_mode & 07777);
	else
		store_doctor_add(
		    f, "file", true, "mode %04o", (unsigned)st.st_mode & 07777);
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
	char text[256];

	if (folder_is_wrong(store, text, sizeof(text)))
		store_doctor_add(f, "folder", false, "%s", text);
	else
		store_doctor_add(f, "folder", true,
		    "no other user can rename or remove files in it");
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
	check_schema(reader->db, f);
	check_foreign(reader->db, f);
	check_journal(reader->db, f);
	store_reader_give(store, reader);
	rc = store_doctor_dead(store, &dead);
	store_doctor_leases(f, rc, dead);
	check_mode(store, f);
	doctor_check_folder(store, f);
	store_doctor_add(f, "log", true,
	    "%" PRId64 " bytes in the write-ahead log",
	    store_files_size(store->file, "-wal"));
	return RC_OK;
}
