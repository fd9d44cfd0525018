/*
 * See dbfile.h.  SQLite opens files with O_NOFOLLOW; the checks here
 * cover what that flag does not refuse.
 *
 * Nothing here opens an existing file: closing it again would drop the locks
 * that this process has on it.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "dbfile.h"

char *
dbfile_resolve(const char *name, char *err, size_t errsize)
{
	const char *slash = strrchr(name, '/');
	char *folder, *real = NULL, *file = NULL;

	if (slash == NULL)
		folder = strdup(".");
	else
		folder = strndup(name, (size_t)(slash + 1 - name));
	if (folder != NULL)
		real = realpath(folder, NULL);
	if (real == NULL ||
	    asprintf(&file, "%s/%s", strcmp(real, "/") != 0 ? real : "",
		slash != NULL ? slash + 1 : name) == -1) {
		snprintf(
		    err, errsize, "database %s: %s", name, strerror(errno));
		file = NULL;
	}
	free(real);
	free(folder);
	return file;
}

enum rc
dbfile_make(const char *file, unsigned mode, bool create, bool *made, char *err,
    size_t errsize)
{
	struct stat st;
	int fd;

	*made = false;
	if (lstat(file, &st) == 0)
		return RC_OK;
	if (errno == ENOENT && !create) {
		snprintf(
		    err, errsize, "database %s: %s", file, strerror(errno));
		return RC_NOTFOUND;
	}
	/* O_EXCL follows no link and opens no existing file. */
	fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd == -1 && errno == EEXIST)
		return RC_OK;
	if (fd == -1) {
		enum rc rc =
		    errno == ENOSPC || errno == EDQUOT ? RC_FULL : RC_IO;

		snprintf(
		    err, errsize, "database %s: %s", file, strerror(errno));
		return rc;
	}
	(void)fchmod(fd, mode); /* whatever the umask */
	close(fd);
	*made = true;
	FAULT(SCHEMA_FILE);
	return RC_OK;
}

/* Whether that owner of a file is trusted.  Root is, and the folder's owner can
 * put any file there anyway. */
static bool
may_own(uid_t owner, const char *file)
{
	struct stat st;
	char *folder;
	bool may;

	if (owner == 0 || owner == geteuid())
		return true;
	folder = strndup(file, (size_t)(strrchr(file, '/') + 1 - file));
	may = folder != NULL && stat(folder, &st) == 0 && st.st_uid == owner;
	free(folder);
	return may;
}

static enum rc
check_one(const char *file, bool owned, char *err, size_t errsize)
{
	struct stat st;

	if (lstat(file, &st) == -1) {
		if (errno == ENOENT)
			return RC_OK;
		snprintf(
		    err, errsize, "database %s: %s", file, strerror(errno));
		return RC_IO;
	}
	if (S_ISLNK(st.st_mode))
		snprintf(err, errsize,
		    "database %s: is a symbolic link, which is not followed; "
		    "name the file itself",
		    file);
	else if (!S_ISREG(st.st_mode))
		snprintf(err, errsize, "database %s: not a file", file);
	else if (st.st_nlink > 1)
		snprintf(err, errsize,
		    "database %s: the file has %ju names (hard links); remove "
		    "the others, or put a copy in its place",
		    file, (uintmax_t)st.st_nlink);
	else if (owned && !may_own(st.st_uid, file))
		snprintf(err, errsize,
		    "database %s: belongs to user %ju, and not to root, to "
		    "oncewrap's own user or to the folder's owner; chown(1) it "
		    "if it is yours",
		    file, (uintmax_t)st.st_uid);
	else
		return RC_OK;
	return RC_IO;
}

enum rc
dbfile_check_use(
    const char *file, enum store_files_use use, char *err, size_t errsize)
{
	struct store_files_bar bar;

	if (store_files_check(file, use, &bar))
		return RC_OK;
	/* A daemon logs the cure by itself. */
	snprintf(err, errsize, "database %s: %s%s%s", bar.file,
	    strerror(bar.error), use == STORE_FILES_DAEMON ? "" : ": ",
	    use == STORE_FILES_DAEMON ? "" : bar.cure);
	return use == STORE_FILES_READ ? RC_IO : RC_READONLY;
}

/* --- the log -------------------------------------------------------------- */

/* SQLite's file format, "The Locking Protocol": every connection in WAL mode
 * locks the first of the shared bytes. */
#define SHARED_BYTE 0x40000002

/* How long (ms) another process may take to create or remove its log. */
#define PATIENCE 1000

/*
 * Whether another process uses the file; false if that cannot be told.  A child
 * asks fcntl(2): /proc/locks hides processes of other PID namespaces, and to
 * close the file here would drop this process's locks.
 */
static bool
is_used(const char *file)
{
	struct flock lock = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = SHARED_BYTE,
		.l_len = 1 };
	const pid_t self = getpid();
	int status, fd;
	pid_t pid;

	if ((pid = fork()) == 0) {
		fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		_exit(fd != -1 && fcntl(fd, F_GETLK, &lock) == 0 &&
		    lock.l_type != F_UNLCK && lock.l_pid != self);
	}
	while (pid != -1 && waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return false;
	return pid != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Whether the file with that name and suffix does not exist. */
static bool
is_missing(const char *file, const char *suffix)
{
	struct stat st;
	char *name;
	bool missing;

	if (asprintf(&name, "%s%s", file, suffix) == -1)
		return false;
	missing = lstat(name, &st) == -1 && errno == ENOENT;
	free(name);
	return missing;
}

enum rc
dbfile_check_log(const char *file, char *err, size_t errsize)
{
	const char *gone = NULL;

	for (int waited = 0; waited <= PATIENCE; waited += 20) {
		gone = is_missing(file, "-wal") ? "-wal"
		    : is_missing(file, "-shm")  ? "-shm"
						: NULL;
		if (gone == NULL || !is_used(file))
			return RC_OK;
		usleep(20000);
	}
	snprintf(err, errsize,
	    "database %s: %s%s is gone, but another process, perhaps of "
	    "another container, still uses it; end that first",
	    file, file, gone);
	return RC_REPLACED;
}

enum rc
dbfile_check(const char *file, bool daemon, char *err, size_t errsize)
{
	static const struct {
		const char *suffix;
		bool owned;
	} files[] = { { "", true }, { "-journal", true }, { "-wal", false },
		{ "-shm", false }, { "-lock", false } };
	char *name;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (asprintf(&name, "%s%s", file, files[i].suffix) == -1)
			return RC_NOMEM;
		rc = check_one(name, daemon && files[i].owned, err, errsize);
		free(name);
		if (rc != RC_OK)
			break;
	}
	return rc;
}
