/*
 * Opens a writing connection on a database file, which has this version of the
 * schema or is empty and gets it.
 */
#ifndef SCHEMA_H
#define SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db.h"

#define SCHEMA_APPLICATION_ID 0x6f6e6365 /* "once" */
#define SCHEMA_VERSION        QUERIES_VERSION

struct schema_options {
	const char *file;
	unsigned mode; /* of a new file */
	bool create;   /* create a database; else RC_NOTFOUND */
	bool full;     /* a commit is synced */
	bool views;    /* triggers and views on, for a handler's side */
	int64_t busy_timeout;
};

/*
 * The database's folder is resolved here, once: db_file() of the result has no
 * symbolic link, and neither has the file's own name.  create: a database that
 * is not in WAL mode is put into it, and the creation of a database is logged.
 *
 * RC_VERSION: another release wrote the file, which is left unchanged.
 * RC_CORRUPT: not a database, or another program's, which is left
 * unchanged.  On failure *db is NULL, and err has a sentence that names the
 * file.
 */
enum rc schema_open(
    struct db **out, const struct schema_options *o, char *err, size_t errsize);

#endif
