/*
 * SQLite: the files of an open database.  They are the database itself, its
 * write-ahead log, and the log's index.  The last part makes a copy.
 */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db_impl.h"

/* Each frame of the log is a page and a header; so is the file (SQLite's file
 * format, section 4.1). */
#define WAL_HEADER       32
#define WAL_FRAME_HEADER 24

/* SQLite's format of the log's index: the bytes that are mapped at once, and
 * the places of the number of frames, of the salt, and of the numbers of frames
 * that were moved into the file, and that were to be moved, in words of 32
 * bits. */
#define SHM_REGION 32768
#define SHM_FRAMES 4
#define SHM_SALT   8
#define SHM_DONE   24
#define SHM_MOVED  32

/* --- the database --------------------------------------------------------- */

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

bool
db_has_moved(const struct db *db)
{
	int moved = 0;

	/* Another VFS may not know this file control. */
	(void)sqlite3_file_control(
	    db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	return moved != 0;
}

enum rc
db_sync_foreign_commits(struct db *db)
{
	sqlite3_file *file;
	int code = SQLITE_OK;

	if (db->full &&
	    (file = db_own_file(db, SQLITE_FCNTL_FILE_POINTER)) != NULL)
		code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	return code == SQLITE_OK ? RC_OK : db_fail(db, code, "sync");
}

/* --- the mode of the log -------------------------------------------------- */

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

/* --- the log's index ------------------------------------------------------ */

/* The first words of the log's index; NULL: there is none. */
static volatile uint32_t *
log_index(struct db *db)
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
	volatile uint32_t *index = log_index(db);

	return index == NULL
	    ? 0
	    : (uint64_t)index[SHM_SALT] << 32 | index[SHM_SALT + 1];
}

uint32_t
db_log_moved(struct db *db)
{
	volatile uint32_t *index = log_index(db);

	return index == NULL ? 0 : index[SHM_MOVED];
}

/* In this order: the number of frames only grows, until all were moved and the
 * log begins anew. */
bool
db_log_is_moved(struct db *db, uint64_t salt)
{
	volatile uint32_t *index = log_index(db);
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
	volatile uint32_t *index = log_index(db);
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

/* --- the length of the log, and the disk ---------------------------------- */

uint64_t
db_wal_bytes(const struct db *db)
{
	if (db->wal_frames == 0)
		return 0;
	return WAL_HEADER +
	    (uint64_t)db->wal_frames *
	    (uint64_t)(WAL_FRAME_HEADER + db->page_size);
}

uint64_t
db_room(const struct db *db)
{
	struct statvfs fs;

	if (statvfs(db_file(db), &fs) == -1)
		return UINT64_MAX;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

bool
db_log_fits(const struct db *db, uint64_t more)
{
	const uint64_t room = db_room(db), used = db_wal_bytes(db);
	const char *log =
	    sqlite3_filename_wal(sqlite3_db_filename(db->handle, "main"));
	uint64_t spare = 0; /* left in the file from a longer log */
	struct stat st;

	if (room >= used + more)
		return true;
	if (stat(log, &st) == 0 && (uint64_t)st.st_size > used)
		spare = (uint64_t)st.st_size - used;
	return room >= used && room + spare >= used + more;
}

enum rc
db_checkpoint(struct db *db, bool truncate)
{
	int64_t patience = db->busy_timeout;
	int code, frames = -1, moved = -1;

	db->busy_timeout = 0;
	code = sqlite3_wal_checkpoint_v2(db->handle, "main",
	    truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
	    &frames, &moved);
	db->busy_timeout = patience;
	if ((code == SQLITE_OK || code == SQLITE_BUSY) && frames >= 0)
		db->wal_frames = frames;
	return code == SQLITE_OK ? RC_OK : db_fail(db, code, "checkpoint");
}

/* --- a mapped file that is truncated -------------------------------------- */

/*
 * SQLite maps the index of the log (-shm) into memory.  A handler that shares
 * the database can truncate that file, and then an access to the mapping raises
 * SIGBUS, which would end the process.
 *
 * So the page that is missing becomes one of zeros, of this process alone.
 * SQLite goes on with that, and what it then reads is worth nothing.  What it
 * writes there no other process sees.  So from then on the process uses nothing
 * of what it reads, and takes no COMMIT for done, until it is started anew.
 */
static atomic_bool torn;
static uintptr_t memory_page;

/* Returns to the instruction that failed.  If nothing was mapped, that fails
 * again, and ends the process. */
static void
on_bus(int number, siginfo_t *info, void *context)
{
	const uintptr_t address = (uintptr_t)info->si_addr;
	void *page = (char *)info->si_addr - address % memory_page;

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap(page, memory_page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		atomic_store(&torn, true);
	else
		(void)signal(number, SIG_DFL);
}

void
db_survive_torn(void)
{
	struct sigaction sa;

	memory_page = (uintptr_t)sysconf(_SC_PAGESIZE);
	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_bus;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	(void)sigaction(SIGBUS, &sa, NULL);
}

bool
db_is_torn(void)
{
	return atomic_load(&torn);
}

/* --- a copy --------------------------------------------------------------- */

/* Bytes copied between two calls of next(). */
#define COPY_STEP (4 * 1024 * 1024)

/* A lost copy is made anew: it needs no journal and no sync before its end. */
#define COPY_SETTINGS "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"

static enum rc
open_copy(
    struct db *source, const char *to, sqlite3 **copy, sqlite3_backup **backup)
{
	int code;

	code = sqlite3_open_v2(to, copy,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
	    NULL);
	if (*copy == NULL)
		return RC_NOMEM;
	if (code == SQLITE_OK)
		code = sqlite3_exec(*copy, COPY_SETTINGS, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return db_fail(source, code, "open the copy");
	*backup = sqlite3_backup_init(*copy, "main", source->handle, "main");
	return *backup != NULL
	    ? RC_OK
	    : db_fail(source, sqlite3_errcode(*copy), "backup");
}

enum rc
db_copy(struct db *source, const char *to, enum rc (*next)(void *), void *arg,
    uint64_t *bytes)
{
	sqlite3_backup *backup = NULL;
	sqlite3 *copy = NULL;
	int64_t version, page_size;
	int code = SQLITE_OK;
	enum rc rc;

	/* The first read fixes what the transaction sees. */
	if ((rc = db_begin_read(source)) == RC_OK &&
	    (rc = db_pragma(source, "schema_version", &version)) == RC_OK &&
	    (rc = db_pragma(source, "page_size", &page_size)) == RC_OK)
		rc = open_copy(source, to, &copy, &backup);
	while (rc == RC_OK && code == SQLITE_OK) {
		code =
		    sqlite3_backup_step(backup, (int)(COPY_STEP / page_size));
		if (code == SQLITE_OK)
			rc = next(arg);
		else if (code != SQLITE_DONE)
			rc = db_fail(source, code, "copy");
	}
	if (rc == RC_OK)
		*bytes = (uint64_t)sqlite3_backup_pagecount(backup) *
		    (uint64_t)page_size;
	(void)sqlite3_backup_finish(backup);
	code = sqlite3_close(copy);
	if (rc == RC_OK && code != SQLITE_OK)
		rc = db_fail(source, code, "close the copy");
	db_rollback(source);
	return rc;
}
