/*
 * SQLite: protects a connection from foreign parts in its file.
 */
#include "config.h"

#include <string.h>

#include "db_impl.h"

/* SQLite's format of the log's index: the bytes that are mapped at once, and
 * the places of the number of frames, of the salt, and of the numbers of frames
 * that were moved into the file, and that were to be moved, in words of 32
 * bits. */
#define SHM_REGION 32768
#define SHM_FRAMES 4
#define SHM_SALT   8
#define SHM_DONE   24
#define SHM_MOVED  32

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

sqlite3_file *
db_own_file(const struct db *db, int which)
{
	sqlite3_file *file = NULL;

	if (sqlite3_file_control(db->handle, "main", which, &file) !=
		SQLITE_OK ||
	    file == NULL || file->pMethods == NULL)
		return NULL;
	return file;
}

enum rc
db_read_file(
    struct db *db, int64_t offset, void *data, int size, int64_t *length)
{
	sqlite3_file *file = db_own_file(db, SQLITE_FCNTL_FILE_POINTER);
	sqlite3_int64 n = 0;
	int code = SQLITE_IOERR;

	if (file != NULL)
		code = file->pMethods->xRead(file, data, size, offset);
	if (code == SQLITE_IOERR_SHORT_READ)
		return RC_NOTFOUND;
	if (code == SQLITE_OK)
		code = file->pMethods->xFileSize(file, &n);
	*length = n;
	return code == SQLITE_OK ? RC_OK : db_fail(db, code, "read the file");
}

/* The first words of the log's index; NULL: there is none. */
static volatile uint32_t *
guard_index(struct db *db)
{
	sqlite3_file *file = db_own_file(db, SQLITE_FCNTL_FILE_POINTER);
	volatile void *index = NULL;

	if (file == NULL || file->pMethods->iVersion < 2 ||
	    file->pMethods->xShmMap(file, 0, SHM_REGION, 0, &index) !=
		SQLITE_OK)
		return NULL;
	return index;
}

uint64_t
db_log_salt(struct db *db)
{
	volatile uint32_t *index = guard_index(db);

	return index == NULL
	    ? 0
	    : (uint64_t)index[SHM_SALT] << 32 | index[SHM_SALT + 1];
}

uint32_t
db_log_moved(struct db *db)
{
	volatile uint32_t *index = guard_index(db);

	return index == NULL ? 0 : index[SHM_MOVED];
}

/* In this order: the number of frames only grows, until all were moved and the
 * log begins anew. */
bool
db_log_is_moved(struct db *db, uint64_t salt)
{
	volatile uint32_t *index = guard_index(db);
	uint32_t done;

	if (index == NULL)
		return false;
	done = index[SHM_DONE];
	return db_log_salt(db) != salt || done >= index[SHM_FRAMES];
}

enum rc
db_log_check(struct db *db)
{
	sqlite3_file *log = db_own_file(db, SQLITE_FCNTL_JOURNAL_POINTER);
	volatile uint32_t *index = guard_index(db);
	sqlite3_int64 size = 0;
	uint32_t frames;
	int code;

	if (log == NULL || index == NULL)
		return RC_OK; /* no log yet */
	frames = index[SHM_FRAMES];
	if (frames == 0)
		return RC_OK;
	code = log->pMethods->xFileSize(log, &size);
	if (code != SQLITE_OK)
		return db_fail(db, code, "tell the size of the log");
	return size < WAL_HEADER +
		    (sqlite3_int64)frames * (WAL_FRAME_HEADER + db->page_size)
	    ? RC_LOST
	    : RC_OK;
}

void
db_keep_log(struct db *db)
{
	(void)guard_set(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1);
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
