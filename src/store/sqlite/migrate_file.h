/*
 * The files of a database, before they are opened.
 *
 * The folder may be one that handlers may write, too, and then a name in it
 * can stand for anything: a link to a file of the system, which a daemon with
 * root's rights would write.
 */
#ifndef MIGRATE_FILE_H
#define MIGRATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "rc.h"

/* The same name below the folder's own, without symbolic links on the way
 * there; the caller frees it.  NULL: err says why. */
char *migrate_file_resolve(const char *name, char *err, size_t errsize);

/*
 * Makes the file with that mode if it is not there, before SQLite opens it:
 * the log and its index take after it.  *made says that it did.  create: if
 * false, RC_NOTFOUND.
 */
enum rc migrate_file_make(const char *file, unsigned mode, bool create,
    bool *made, char *err, size_t errsize);

/*
 * Whether the files that there are may be opened: regular files with one link
 * (name).  For a daemon the database and its rollback journal must also belong
 * to root, to the daemon's user, or to the folder's owner; the write-ahead log
 * and its index may be those of a handler that was first to open the database.
 */
enum rc
migrate_file_check(const char *file, bool daemon, char *err, size_t errsize);

/*
 * Whether the log and its index are there if a process uses them: without them
 * new ones would be made, keys forgotten, and the file be spoilt by the two.
 */
enum rc migrate_file_check_log(const char *file, char *err, size_t errsize);

#endif
