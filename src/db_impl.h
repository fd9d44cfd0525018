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

struct db {
	sqlite3 *handle;
	sqlite3_stmt *rollback; /* made beforehand, see db_rollback() */
	bool quiet;
	int64_t busy_timeout, busy_since;
	int64_t page_size;
	int wal_frames;
	uint64_t commits;
	struct db_stmt stmt[QUERY_COUNT];
};

/* Logs what failed and gives its rc; code is not SQLITE_OK. */
enum rc db_fail(struct db *, int code, const char *what);

#endif
