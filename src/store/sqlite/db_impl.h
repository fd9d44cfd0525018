/*
 * Private to the db files.
 */
#ifndef DB_IMPL_H
#define DB_IMPL_H

#include <sqlite3.h>

#include "words.h"
#include "db.h"

struct db_stmt {
	struct db *db;
	sqlite3_stmt *stmt;
	enum query name;
	enum rc error; /* of preparing or binding */
	/* the structs that its columns were compared with, and the first column
	 * of each */
	struct {
		const struct row_member *members;
		int first;
	} known[2];
};

/* clang-format off */
#define DB_TX(X) \
	X(DB_BEGIN, "BEGIN IMMEDIATE") \
	X(DB_BEGIN_READ, "BEGIN") \
	X(DB_COMMIT, "COMMIT") \
	X(DB_ROLLBACK, "ROLLBACK")
/* clang-format on */
enum db_tx { DB_TX(WORDS_ENUMERATOR) };
#define DB_NTX WORDS_COUNT(DB_TX)

struct db {
	sqlite3 *handle;
	sqlite3_stmt *tx[DB_NTX];
	bool quiet;
	bool glances;
	bool full; /* commits are synced */
	int64_t busy_timeout, busy_since;
	int64_t page_size;
	int wal_frames;
	uint64_t commits;
	struct db_stmt stmt[QUERY_COUNT];
};

/* SQLite's own file, open: the database, or the log; NULL: there is none. */
sqlite3_file *db_own_file(const struct db *db, int which);

/* From now on a truncated file that SQLite has mapped does not end the process:
 * see db_is_torn(). */
void db_survive_torn(void);

/* Lets threads glance: see db_glance_begin().  Before the first connection. */
void db_glance_setup(void);

/* Reports a mistake in the program.  It is no assert in production: that
 * statement fails, and others still work.  Returns RC_INVALID. */
enum rc db_misused(struct db_stmt *s, const char *message);

/* Logs the failure and returns its rc; code is not SQLITE_OK. */
enum rc db_fail(struct db *db, int code, const char *what);

#endif
