/*
 * SQLite: protects a connection from foreign parts in its file.
 */
#include "config.h"

#include <string.h>

#include "db_impl.h"

static enum rc
guard_set(struct db *db, int option, int on)
{
	int code = sqlite3_db_config(db->handle, option, on, NULL);

	return code == SQLITE_OK ? RC_OK : db_fail(db, code, "db_config");
}

/*
 * Triggers and views of the file run with the rights of the connection that
 * meets them, and every program that may write the file may create some.  (TEMP
 * triggers, as in checks.sql, belong to the connection and still run.)
 */
enum rc
db_protect(struct db *db)
{
	enum rc rc;

	if ((rc = guard_set(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)) == RC_OK &&
	    (rc = guard_set(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0)) == RC_OK &&
	    (rc = guard_set(db, SQLITE_DBCONFIG_DEFENSIVE, 1)) == RC_OK)
		rc = guard_set(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
	return rc;
}

enum rc
db_use_views(struct db *db)
{
	enum rc rc;

	if ((rc = guard_set(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)) == RC_OK)
		rc = guard_set(db, SQLITE_DBCONFIG_ENABLE_VIEW, 1);
	return rc;
}

bool
db_has_moved(const struct db *db)
{
	int moved = 0;

	/* Another VFS may not know this file control. */
	(void)sqlite3_file_control(
	    db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	return moved != 0;
}

/* Runs a statement about the journal mode, which returns the mode as a row. */
static enum rc
journal_mode(struct db *db, const char *sql, bool *wal)
{
	sqlite3_stmt *stmt = NULL;
	const char *mode = NULL;
	enum rc rc = RC_OK;
	int code;

	code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		mode = (const char *)sqlite3_column_text(stmt, 0);
	else
		rc = db_fail(db, code, sql);
	*wal = mode != NULL && strcmp(mode, "wal") == 0;
	sqlite3_finalize(stmt);
	return rc;
}

enum rc
db_is_wal(struct db *db, bool *wal)
{
	return journal_mode(db, "PRAGMA journal_mode", wal);
}

enum rc
db_use_wal(struct db *db)
{
	enum rc rc;
	bool wal;

	rc = journal_mode(db, "PRAGMA journal_mode = WAL", &wal);
	/* If it stays off, that file system has no shared memory. */
	return rc == RC_OK && !wal ? RC_IO : rc;
}
