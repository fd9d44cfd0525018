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
#define MIGRATE_VERSION        1

struct migrate_options {
	const char *file;
	unsigned mode; /* of a new file */
	bool create;   /* where there is none; else RC_NOTFOUND */
	bool full;     /* a commit is synced */
	int64_t busy_timeout;
};

/*
 * RC_VERSION: written by a newer release.  RC_CORRUPT: not a database, or
 * another program's, which is left as it was.  On failure *db is NULL, and err
 * has a sentence that names the file; nothing is logged.
 */
enum rc migrate_open(
    struct db **, const struct migrate_options *, char *err, size_t errsize);

#endif
