/*
 * Opens a writing connection on a database file and brings it to this version.
 */
#ifndef MIGRATE_H
#define MIGRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db.h"

#define MIGRATE_APPLICATION_ID 0x6f6e6365 /* "once" */
#define MIGRATE_VERSION        QUERIES_VERSION

struct migrate_options {
	const char *file;
	unsigned mode; /* of a new file */
	bool create;   /* create and upgrade; else RC_NOTFOUND, RC_VERSION */
	bool full;     /* a commit is synced */
	bool views;    /* triggers and views on, for a handler's side */
	int64_t busy_timeout;
};

/*
 * The database's folder is resolved here, once: db_file() of the result has no
 * symbolic link, and neither has the file's own name.  create: a database that
 * is not in WAL mode is put into it, and the creation of a database is logged.
 *
 * RC_VERSION: a newer release wrote the file; or an older one did, and create
 * is false.  RC_CORRUPT: not a database, or another program's, which is left
 * unchanged.  On failure *db is NULL, and err has a sentence that names the
 * file.
 */
enum rc migrate_open(
    struct db **, const struct migrate_options *, char *err, size_t errsize);

#endif
