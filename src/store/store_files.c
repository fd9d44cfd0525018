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

#include "log.h"
#include "user.h"
#include "store_files.h"

static int
protected_regular(void)
{
	char digit = '0';
	int fd;

	fd = open("/proc/sys/fs/protected_regular", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return 0;
	if (read(fd, &digit, 1) != 1)
		digit = '0';
	close(fd);
	return digit - '0';
}

bool
store_files_are_protected(
    const struct stat *folder, const struct stat *file, uid_t user)
{
	int level;

	if ((folder->st_mode & S_ISVTX) == 0 ||
	    file->st_uid == folder->st_uid || file->st_uid == user ||
	    (level = protected_regular()) == 0)
		return false;
	return (folder->st_mode & 02) != 0 ||
	    (level > 1 && (folder->st_mode & 020) != 0);
}

/* The same for this process.  The cure is set if so. */
static bool
files_are_protected(struct store_files_bar *bar)
{
	const char *slash = strrchr(bar->file, '/');
	char path[sizeof(bar->file)], owner[USER_NAME];
	struct stat folder, file;

	snprintf(path, sizeof(path), "%.*s",
	    slash != NULL ? (int)(slash - bar->file + 1) : 1,
	    slash != NULL ? bar->file : ".");
	if (stat(path, &folder) == -1 || stat(bar->file, &file) == -1 ||
	    !store_files_are_protected(&folder, &file, geteuid()))
		return false;
	bar->error = EACCES;
	user_name(file.st_uid, owner);
	snprintf(bar->cure, sizeof(bar->cure),
	    "belongs to %s, and in a folder with the sticky bit the sysctl "
	    "fs.protected_regular allows only files of one's own and of the "
	    "folder's owner: see share_database in oncewrap.conf(5)",
	    owner);
	return true;
}

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
	else if (use == STORE_FILES_DAEMON)
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

/* Whether no file can be made beside the database: SQLite makes -wal and -shm
 * even to read. */
static bool
is_read_only(const char *database)
{
	char folder[sizeof(((struct store_files_bar *)NULL)->file)];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", database);
	slash = strrchr(folder, '/');
	if (slash != NULL)
		slash[1] = '\0';
	return faccessat(AT_FDCWD, slash != NULL ? folder : ".", W_OK,
		   AT_EACCESS) == -1 &&
	    errno == EROFS;
}

bool
store_files_check(
    const char *database, enum store_files_use use, struct store_files_bar *bar)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
	const size_t n = use == STORE_FILES_DAEMON ? 4 : 3;
	const int mode = use == STORE_FILES_READ ? R_OK : R_OK | W_OK;

	bool exists = false;
	int error;

	for (size_t i = 0; i < n; i++) {
		snprintf(bar->file, sizeof(bar->file), "%s%s", database,
		    suffixes[i]);
		if (faccessat(AT_FDCWD, bar->file, mode, AT_EACCESS) == 0) {
			exists = true;
			if (use != STORE_FILES_READ && files_are_protected(bar))
				return false;
			continue;
		}
		error = errno;
		if (error == ENOENT && exists && i < 3 &&
		    is_read_only(database))
			error = EROFS;
		if (error == ENOENT)
			continue;
		bar->error = error;
		files_cure(use, bar);
		return false;
	}
	return true;
}

int64_t
store_files_size(const char *database, const char *suffix)
{
	char name[4112];
	struct stat st;

	if ((size_t)snprintf(name, sizeof(name), "%s%s", database, suffix) >=
	    sizeof(name))
		return 0;
	return stat(name, &st) == 0 ? st.st_size : 0;
}

/* --- the owner of the files ----------------------------------------------- */

/* Rights of the group: read and write. */
#define GROUP 0060

/*
 * Gives a file of the store to the database's group.  The group may be able to
 * write the folder too, so a name in it can be anything.  Only a file with one
 * name, in place, and owned by this user is changed.  An O_PATH descriptor has
 * no part in SQLite's locks: closing it drops none (as of Linux 2.6.39).
 */
static void
give_to_group(const char *file, const char *suffix)
{
	char name[4096], self[64];
	struct stat st;
	int fd;

	if ((size_t)snprintf(name, sizeof(name), "%s%s", file, suffix) >=
	    sizeof(name))
		return;
	fd = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return; /* not there yet: it copies the database's mode */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == -1)
		goto failed;
	if ((st.st_mode & GROUP) == GROUP)
		goto out;
	errno = EPERM;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    chmod(self, (st.st_mode & 07777) | GROUP) == -1)
		goto failed;
	goto out;
failed:
	log_event(LOG_WARN, "store-mode", NULL, LOG_S("file", name),
	    LOG_S("message", strerror(errno)),
	    LOG_S("note", "handlers cannot share it"));
out:
	close(fd);
}

void
store_files_share(const char *file)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		give_to_group(file, suffixes[i]);
}
