/*
 * From a file name to a writing connection on a database of this version.
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
	bool create;   /* make and upgrade it; else RC_NOTFOUND, RC_VERSION */
	bool full;     /* a commit is synced */
	bool views;    /* for a handler's side: triggers and views are on */
	int64_t busy_timeout;
};

/*
 * The database's folder is resolved here, once: db_file() of what is opened
 * has no symbolic link, and neither has the file's own name.  create: a
 * database that is not in WAL mode is put into it, and one that is made is
 * logged.
 *
 * RC_VERSION: written by a newer release, or by an older one and not to be
 * upgraded.  RC_CORRUPT: not a database, or
 * another program's, which is left as it was.  On failure *db is NULL, and err
 * has a sentence that names the file.
 */
enum rc migrate_open(
    struct db **, const struct migrate_options *, char *err, size_t errsize);

#endif
