/*
 * SQLite: connections and transactions.  Code here does not know what the
 * tables mean.
 */
#include "config.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "clock.h"
#include "log.h"
#include "db_impl.h"

static enum rc
map_code(int code)
{
	if (code == SQLITE_CONSTRAINT_TRIGGER) /* RAISE(): a view refused it */
		return RC_INVALID;
	switch (code & 0xff) {
	case SQLITE_OK:
		return RC_OK;
	case SQLITE_NOMEM:
		return RC_NOMEM;
	case SQLITE_FULL:
		return RC_FULL;
	case SQLITE_READONLY:
		return RC_READONLY;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL: /* gave up a race for locks of the log */
		return RC_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CONSTRAINT: /* a bug here, or a foreign writer */
	case SQLITE_MISMATCH:
	case SQLITE_ERROR: /* no such table, in a store of ours */
		return RC_CORRUPT;
	case SQLITE_TOOBIG:
		return RC_LIMIT;
	default: /* IOERR, CANTOPEN, PERM, ... */
		return RC_IO;
	}
}

enum rc
db_fail(struct db *db, int code, const char *what)
{
	enum rc rc = map_code(code);

	assert(rc != RC_OK);
	if (!db->quiet && rc != RC_BUSY)
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("database", db_file(db)), LOG_S("doing", what),
		    LOG_S("message", db_message(db)), LOG_I("code", code),
		    LOG_I("errno", sqlite3_system_errno(db->handle)));
	return rc;
}

/*
 * SQLite's own busy handler sleeps up to 100 ms between two tries, but a busy
 * writer leaves gaps of less than 1 ms.
 */
static int
on_busy(void *arg, int n)
{
	struct db *db = arg;
	struct timespec ts = { 0, 500000 };
	int64_t now = clock_mono();

	if (n == 0)
		db->busy_since = now;
	if (now - db->busy_since >= db->busy_timeout)
		return 0;
	ts.tv_nsec += (now * 7919 + n * 104729) % 1500 * 1000;
	nanosleep(&ts, NULL);
	return 1;
}

static int
on_commit(void *arg, sqlite3 *handle, const char *name, int frames)
{
	struct db *db = arg;

	(void)handle;
	if (strcmp(name, "main") == 0) {
		db->wal_frames = frames;
		db->commits++;
	}
	return SQLITE_OK;
}

static enum rc
db_config(struct db *db, int option, int on)
{
	int code = sqlite3_db_config(db->handle, option, on, NULL);

	return code == SQLITE_OK ? RC_OK : db_fail(db, code, "db_config");
}

/*
 * Triggers and views of the file run with the rights of the connection that
 * meets them, and every program that may write the file may create some.  What
 * is not trusted can call no function with side effects.  (TEMP triggers, as in
 * checks.sql, belong to the connection and still run.)
 */
static enum rc
protect_connection(struct db *db)
{
	enum rc rc;

	if ((rc = db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)) == RC_OK &&
	    (rc = db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0)) == RC_OK &&
	    (rc = db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1)) == RC_OK)
		rc = db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
	return rc;
}

enum rc
db_use_views(struct db *db)
{
	enum rc rc;

	if ((rc = db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)) == RC_OK)
		rc = db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 1);
	return rc;
}

/*
 * SQLite counts its memory under a lock around each allocation, for all
 * connections, and this program never reads the count.  If SQLite is already
 * initialised, or refuses, it goes on counting.
 */
static void
configure_sqlite(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	db_survive_torn();
	db_glance_setup();
}

const char *
db_library_refusal(void)
{
	/* Buildroot offers it, and other builders of firmware set it. */
	if (sqlite3_compileoption_used("NO_SYNC") != 0)
		return "the SQLite library was built with SQLITE_NO_SYNC, so "
		       "keys would be lost with the power; build it without";
	if (sqlite3_threadsafe() == 0)
		return "the SQLite library was built with SQLITE_THREADSAFE=0; "
		       "build it with 1 or 2";
	return NULL;
}

enum rc
db_open(struct db **out, const char *file, int64_t busy_timeout)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct db *db;
	int code;

	*out = NULL;
	(void)pthread_once(&once, configure_sqlite);
	db = calloc(1, sizeof(*db));
	if (db == NULL)
		return RC_NOMEM;
	db->busy_timeout = busy_timeout;
	code = sqlite3_open_v2(file, &db->handle,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
	    NULL);
	if (db->handle == NULL) {
		free(db);
		return RC_NOMEM;
	}
	*out = db; /* also on failure: it holds the message */
	if (code != SQLITE_OK) {
		db->quiet = true;
		return db_fail(db, code, "open");
	}
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_handler(db->handle, on_busy, db);
	sqlite3_wal_hook(db->handle, on_commit, db);
	return protect_connection(db);
}

void
db_close(struct db *db)
{
	int i, code;

	if (db == NULL)
		return;
	for (i = 0; i < QUERY_COUNT; i++)
		sqlite3_finalize(db->stmt[i].stmt);
	for (i = 0; i < DB_NTX; i++)
		sqlite3_finalize(db->tx[i]);
	code = sqlite3_close(db->handle);
	assert(code == SQLITE_OK); /* all statements are closed */
	(void)code;
	free(db);
}

void
db_keep_log(struct db *db)
{
	(void)db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1);
}

const char *
db_file(const struct db *db)
{
	const char *name = sqlite3_db_filename(db->handle, "main");

	return name != NULL ? name : "";
}

const char *
db_message(const struct db *db)
{
	/* Of JFFS2, which many boards have, SQLite says "disk I/O error". */
	if (sqlite3_extended_errcode(db->handle) == SQLITE_IOERR_SHMMAP)
		return "the log's index cannot be mapped: a file system such "
		       "as JFFS2 has no shared mappings; use ext4, F2FS or "
		       "UBIFS";
	return sqlite3_errmsg(db->handle);
}

void
db_set_quiet(struct db *db, bool quiet)
{
	db->quiet = quiet;
}

void
db_set_busy_timeout(struct db *db, int64_t ms)
{
	db->busy_timeout = ms;
}

enum rc
db_exec(struct db *db, const char *sql)
{
	int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? RC_OK : db_fail(db, code, sql);
}

/*
 * secure_delete is off on purpose.  Where it is compiled in (Debian), deleting
 * a response of 16 MB writes 16 MB of zeros, which wears flash.  A process that
 * can read the file's free pages can read its keys too.
 */
#define SETTINGS                       \
	"PRAGMA secure_delete = OFF;"  \
	"PRAGMA temp_store = MEMORY;"  \
	"PRAGMA cell_size_check = ON;" \
	"PRAGMA recursive_triggers = ON;"

/* Prepared once for each connection; after a change of the schema SQLite
 * prepares the statement again. */
static enum rc
prepare_tx(struct db *db, enum db_tx tx)
{
	static const char *const text[] = { DB_TX(WORDS_WORD) };
	int code;

	if (db->tx[tx] != NULL)
		return RC_OK;
	code = sqlite3_prepare_v3(db->handle, text[tx], -1,
	    SQLITE_PREPARE_PERSISTENT, &db->tx[tx], NULL);
	return code == SQLITE_OK ? RC_OK : db_fail(db, code, text[tx]);
}

enum rc
db_setup_reader(struct db *db, int cache)
{
	enum rc rc;

	rc = db_exec(db, SETTINGS "PRAGMA query_only = ON;");
	if (rc == RC_OK)
		rc = db_set_pragma(db, "cache_size", -cache);
	return rc;
}

/*
 * The CHECK of a state guards against other programs that write the file.  Our
 * statements have their states as literals.  Each check of such a list builds a
 * temporary table, which is a tenth of the work of a first request.
 */
enum rc
db_setup_writer(struct db *db, bool full)
{
	enum rc rc;

	rc = db_exec(db,
	    SETTINGS "PRAGMA ignore_check_constraints = ON;"
		     "PRAGMA cache_size = -4096;"
		     "PRAGMA journal_size_limit = 8388608;");
	/* EXTRA is like FULL, but outside of WAL mode a commit syncs the folder
	 * too. */
	if (rc == RC_OK)
		rc = db_exec(db,
		    full ? "PRAGMA synchronous = EXTRA;"
			 : "PRAGMA synchronous = NORMAL;");
	db->full = full;
	if (rc == RC_OK)
		rc = db_pragma(db, "page_size", &db->page_size);
	return rc;
}

enum rc
db_load_checks(struct db *db)
{
	const char *const *text;
	enum rc rc;
	size_t n, i;

	rc = db_exec(db, "PRAGMA ignore_check_constraints = OFF");
	text = queries_checks(&n);
	for (i = 0; i < n && rc == RC_OK; i++)
		rc = db_exec(db, text[i]);
	return rc;
}

/*
 * A commit writes whole pages, though few bytes change.  With pages of 512
 * bytes to 4 KiB, a single request wrote 11, 13, 16 and 21 KB.  Below 1 KiB a
 * row with a few long names needs overflow pages.  auto_vacuum is off, because
 * it writes a page of pointers whenever the file grows, and many of them when
 * an inner page of an index is split: with 100,000 keys one for each request.
 */
enum rc
db_setup_new(struct db *db)
{
	enum rc rc;

	rc = db_exec(db, "PRAGMA page_size = 1024; PRAGMA auto_vacuum = NONE;");
	return rc == RC_OK ? db_use_wal(db) : rc;
}

enum rc
db_pragma(struct db *db, const char *name, int64_t *value)
{
	sqlite3_stmt *stmt = NULL;
	char sql[64];
	enum rc rc = RC_OK;
	int code;

	snprintf(sql, sizeof(sql), "PRAGMA %s", name);
	code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*value = sqlite3_column_int64(stmt, 0);
	else
		rc = db_fail(db, code, sql);
	sqlite3_finalize(stmt);
	return rc;
}

enum rc
db_set_pragma(struct db *db, const char *name, int64_t value)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "PRAGMA %s = %lld", name, (long long)value);
	return db_exec(db, sql);
}

static enum rc
run_tx(struct db *db, enum db_tx tx)
{
	enum rc rc;
	int code;

	if ((rc = prepare_tx(db, tx)) != RC_OK)
		return rc;
	code = sqlite3_step(db->tx[tx]);
	sqlite3_reset(db->tx[tx]);
	if (code != SQLITE_DONE)
		rc = db_fail(db, code, sqlite3_sql(db->tx[tx]));
	return rc;
}

/* A transaction may still be open: there may have been no memory to end it. */
static enum rc
begin_tx(struct db *db, enum db_tx tx)
{
	if (!sqlite3_get_autocommit(db->handle))
		db_rollback(db);
	return run_tx(db, tx);
}

enum rc
db_begin(struct db *db)
{
	return begin_tx(db, DB_BEGIN);
}

enum rc
db_begin_read(struct db *db)
{
	return begin_tx(db, DB_BEGIN_READ);
}

enum rc
db_commit(struct db *db)
{
	return run_tx(db, DB_COMMIT);
}

void
db_rollback(struct db *db)
{
	int i;

	for (i = 0; i < QUERY_COUNT; i++)
		if (db->stmt[i].stmt != NULL)
			sqlite3_reset(db->stmt[i].stmt);
	if (!sqlite3_get_autocommit(db->handle))
		(void)run_tx(db, DB_ROLLBACK);
}

int64_t
db_changes(const struct db *db)
{
	return sqlite3_total_changes(db->handle);
}

uint64_t
db_commits(const struct db *db)
{
	return db->commits;
}
