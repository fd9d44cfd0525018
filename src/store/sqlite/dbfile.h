/*
 * Checks on the files of a database, before they are opened.
 *
 * Handlers may be able to write the folder, too.  Then a name in it can be
 * anything, such as a link to a system file, which a daemon with root's rights
 * would write.
 */
#ifndef DBFILE_H
#define DBFILE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"
#include "store_files.h"

/* The same name below its resolved folder, so that no symbolic link is on the
 * way; the caller frees it.  NULL: err says why. */
char *dbfile_resolve(const char *name, char *err, size_t errsize);

/*
 * Creates the file with that mode if it does not exist, before SQLite opens it:
 * the log and its index copy the mode and the owner.  *made: it was created.
 * create: if false, RC_NOTFOUND.
 */
enum rc dbfile_make(const char *file, unsigned mode, bool create, bool *made,
    char *err, size_t errsize);

/*
 * Whether the existing files may be opened: each must be a regular file with
 * one link (name).  For a daemon the database and its rollback journal must
 * also belong to root, to the daemon's user, or to the folder's owner.  The
 * write-ahead log and its index may belong to a handler that opened the
 * database first.
 */
enum rc dbfile_check(const char *file, bool daemon, char *err, size_t errsize);

/* Whether this process may use the existing files so. */
enum rc dbfile_check_use(
    const char *file, enum store_files_use use, char *err, size_t errsize);

/*
 * Whether the log and its index exist if a process uses them.  If they did not,
 * SQLite would create new ones, keys would be forgotten, and two logs would
 * corrupt the file.
 */
enum rc dbfile_check_log(const char *file, char *err, size_t errsize);

#endif
