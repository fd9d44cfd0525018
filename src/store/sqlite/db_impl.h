/*
 * What the files of db share; nobody else includes it.
 */
#ifndef DB_IMPL_H
#define DB_IMPL_H

#include <sqlite3.h>

#include "db.h"

struct db_stmt {
	struct db *db;
	sqlite3_stmt *stmt;
	enum query name;
	enum rc error; /* of preparing or binding */
};

struct db_blob {
	struct db *db;
	sqlite3_blob *blob;
};

enum db_tx { DB_BEGIN, DB_BEGIN_READ, DB_COMMIT, DB_ROLLBACK, DB_NTX };

struct db {
	sqlite3 *handle;
	/* The rollback is made beforehand: what ends a transaction that failed
	 * for want of memory must need none. */
	sqlite3_stmt *tx[DB_NTX];
	bool quiet;
	bool full; /* commits are synced */
	int64_t busy_timeout, busy_since;
	int64_t page_size;
	int wal_frames;
	uint64_t commits;
	struct db_stmt stmt[QUERY_COUNT];
};

/* Turns off what others may have put into the file to be run. */
enum rc db_protect(struct db *);

/* Logs what failed and gives its rc; code is not SQLITE_OK. */
enum rc db_fail(struct db *, int code, const char *what);

#endif
