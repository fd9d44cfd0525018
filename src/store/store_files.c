/*
 * See store_files.h.  SQLite itself falls back to reading, and then each write
 * fails, with a message that names no file.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user.h"
#include "store_files.h"

static void
files_cure(enum store_files_use use, struct store_files_bar *bar)
{
	const bool write = use != STORE_FILES_READ;
	const char *verb = write ? "read and write" : "read";
	const char *bits = write ? "rw" : "r";
	char self[USER_NAME], owner[USER_NAME];
	struct stat st;

	if (bar->error == EROFS) {
		snprintf(bar->cure, sizeof(bar->cure),
		    "is on a file system that is mounted read-only: remount "
		    "it, or name a folder elsewhere");
		return;
	}
	if (stat(bar->file, &st) == -1) {
		snprintf(bar->cure, sizeof(bar->cure), "%s", strerror(errno));
		return;
	}
	user_name(geteuid(), self);
	user_name(st.st_uid, owner);
	if (bar->error == EPERM)
		snprintf(bar->cure, sizeof(bar->cure),
		    "%s may not write it, whatever its mode: chattr -i it",
		    self);
	else if (st.st_uid == geteuid())
		snprintf(bar->cure, sizeof(bar->cure),
		    "%s may not %s this file, which is its own, mode %04o: "
		    "chmod u+%s it",
		    self, verb, st.st_mode & 07777, bits);
	else if (use == STORE_FILES_KEEP)
		snprintf(bar->cure, sizeof(bar->cure),
		    "%s may not %s this file, which belongs to %s, mode %04o: "
		    "name another file, or chown it to %s if it is oncewrap's",
		    self, verb, owner, st.st_mode & 07777, self);
	else
		snprintf(bar->cure, sizeof(bar->cure),
		    "%s may not %s this file, which belongs to %s, mode %04o: "
		    "run this as %s",
		    self, verb, owner, st.st_mode & 07777, owner);
}

bool
store_files_check(
    const char *database, enum store_files_use use, struct store_files_bar *bar)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
	const size_t n = use == STORE_FILES_KEEP ? 4 : 3;
	const int mode = use == STORE_FILES_READ ? R_OK : R_OK | W_OK;

	for (size_t i = 0; i < n; i++) {
		snprintf(bar->file, sizeof(bar->file), "%s%s", database,
		    suffixes[i]);
		if (faccessat(AT_FDCWD, bar->file, mode, AT_EACCESS) == 0 ||
		    errno == ENOENT)
			continue;
		bar->error = errno;
		files_cure(use, bar);
		return false;
	}
	return true;
}
