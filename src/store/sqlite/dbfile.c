/*
 * See dbfile.h.  SQLite opens files with O_NOFOLLOW; the checks here
 * cover what that flag does not refuse.
 *
 * Nothing here opens an existing file: closing it again would drop the locks
 * that this process has on it.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
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

/* --- locks ---------------------------------------------------------------- */

/*
 * The kernel gives the list a page at a time and continues by the number of
 * locks shown so far.  If locks vanish meanwhile, a lock may be left out, so
 * the list is read more than once.
 */
#define LOOKS 5

/* A line: "1: POSIX  ADVISORY  WRITE 4711 fe:01:42 120 120". */
static bool
is_it(char *line, const struct dbfile_lock *what, pid_t *pid)
{
	enum { NUMBER, KIND, HOW, MODE, PID, FILE_ID, START, END, NWORDS };
	char *word[NWORDS], *rest = line, *inode, *minor;
	int i;

	for (i = 0; i < NWORDS; i++)
		if ((word[i] = strtok_r(NULL, " \n", &rest)) == NULL)
			return false;
	if (strcmp(word[KIND], "POSIX") != 0 ||
	    (what->write && strcmp(word[MODE], "WRITE") != 0) ||
	    (inode = strrchr(word[FILE_ID], ':')) == NULL ||
	    strtoull(inode + 1, NULL, 10) != what->ino ||
	    strtoull(word[START], NULL, 10) > what->byte)
		return false;
	if (what->dev != 0 &&
	    ((minor = strchr(word[FILE_ID], ':')) == inode ||
		makedev(strtoul(word[FILE_ID], NULL, 16),
		    strtoul(minor + 1, NULL, 16)) != what->dev))
		return false;
	*pid = (pid_t)strtol(word[PID], NULL, 10);
	return *pid > 0 && *pid != getpid() &&
	    (strcmp(word[END], "EOF") == 0 ||
		strtoull(word[END], NULL, 10) >= what->byte);
}

static pid_t
find_lock(const struct dbfile_lock *what)
{
	char line[256];
	pid_t pid = 0;
	FILE *locks;

	if ((locks = fopen("/proc/locks", "re")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), locks) != NULL)
		if (is_it(line, what, &pid)) {
			fclose(locks);
			return pid;
		}
	fclose(locks);
	return 0;
}

pid_t
dbfile_lock_holder(const struct dbfile_lock *what)
{
	pid_t pid = 0;

	for (int i = 0; i < LOOKS && pid == 0; i++)
		pid = find_lock(what);
	return pid;
}

/* SQLite's file format, "The Locking Protocol": every connection in WAL mode
 * locks the first of the shared bytes. */
#define SHARED_BYTE 0x40000002

/* How long (ms) another process may take to create or remove its log. */
#define PATIENCE 1000

/* What a child found: that no other process has the lock, that one has, or
 * that this cannot be told. */
enum locked { LOCKED_NOT, LOCKED_BY_OTHER, LOCKED_UNKNOWN };

/*
 * Asks fcntl(2) in a child: /proc/locks hides processes of other PID
 * namespaces, and to close the file here would drop this process's locks.
 */
static enum locked
ask_child(const char *file)
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
		if (fd == -1 || fcntl(fd, F_GETLK, &lock) == -1 ||
		    (lock.l_type != F_UNLCK && lock.l_pid == self))
			_exit(LOCKED_UNKNOWN);
		_exit(lock.l_type == F_UNLCK ? LOCKED_NOT : LOCKED_BY_OTHER);
	}
	while (pid != -1 && waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return LOCKED_UNKNOWN;
	return pid != -1 && WIFEXITED(status) ? (enum locked)WEXITSTATUS(status)
					      : LOCKED_UNKNOWN;
}

/* Whether another process uses the file; *pid: which one, 0 if that is not
 * known. */
static bool
is_used(const char *file, const struct dbfile_lock *lock, pid_t *pid)
{
	*pid = dbfile_lock_holder(lock);
	return *pid != 0 || ask_child(file) == LOCKED_BY_OTHER;
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
	struct dbfile_lock lock = { .byte = SHARED_BYTE };
	const char *gone = NULL;
	char by[40];
	struct stat st;
	pid_t pid = 0;

	if (stat(file, &st) == -1)
		return RC_OK; /* it will be created */
	lock.ino = st.st_ino;
	lock.dev = st.st_dev;
	for (int waited = 0; waited <= PATIENCE; waited += 20) {
		gone = is_missing(file, "-wal") ? "-wal"
		    : is_missing(file, "-shm")  ? "-shm"
						: NULL;
		if (gone == NULL || !is_used(file, &lock, &pid))
			return RC_OK;
		usleep(20000);
	}
	if (pid == 0)
		snprintf(by, sizeof(by), "a process of another container");
	else
		snprintf(by, sizeof(by), "process %ld", (long)pid);
	snprintf(err, errsize,
	    "database %s: %s%s is gone, but %s still uses it; end that first",
	    file, file, gone, by);
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
