/*
 * Locks that the kernel drops with the process.  They are open file description
 * locks (fcntl(2)): closing another descriptor of the same file does not drop
 * them, and two stores of one process see each other's.
 *
 * Code here does not know what is owned.
 */
#include "config.h"

#include <sys/stat.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "uuid.h"
#include "liveness.h"

/* After this many bytes were tried in vain, the file counts as locked by
 * others. */
#define TAKE_TRIES 64

struct liveness {
	char *file;
	int fd;
	int64_t self;
};

static enum rc
liveness_failed(const char *file, const char *what)
{
	int error = errno;

	log_event(LOG_ERROR, "liveness-error", NULL, LOG_S("file", file),
	    LOG_S("doing", what), LOG_S("message", strerror(error)));
	errno = error;
	return error == ENOSPC || error == EDQUOT ? RC_FULL
	    : error == EACCES || error == EROFS   ? RC_READONLY
						  : RC_IO;
}

/* Of the database; if it is no file of this host, of the folder. */
static bool
stat_owner(const char *database, struct stat *st)
{
	const char *slash = strrchr(database, '/');
	char folder[PATH_MAX];

	if (stat(database, st) == 0)
		return true;
	if (slash == NULL || slash - database >= PATH_MAX)
		return false;
	snprintf(
	    folder, sizeof(folder), "%.*s", (int)(slash - database), database);
	return stat(folder, st) == 0;
}

/*
 * A new file gets the database's owner, as SQLite does for its own files.
 * Otherwise an operator that opens the store first would lock the daemon out.
 */
static int
liveness_open_file(const char *file, const char *database, unsigned mode)
{
	struct stat st;
	int fd;

	fd = mode == 0
	    ? -1
	    : open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (mode == 0 || (fd == -1 && errno == EEXIST))
		return open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return -1;
	(void)fchmod(fd, mode);
	if (geteuid() == 0 && stat_owner(database, &st) &&
	    fchown(fd, st.st_uid, st.st_gid) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether the name still leads to the open file. */
static bool
same_file(const struct liveness *l)
{
	struct stat by_name, by_fd;

	return stat(l->file, &by_name) == 0 && fstat(l->fd, &by_fd) == 0 &&
	    by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/* Takes a lock, or looks for another's: of so many bytes from that one on, or
 * to the end of the file (0). */
static int
lock_bytes(const struct liveness *l, int command, int64_t start, int64_t n,
    struct flock *lock)
{
	*lock = (struct flock){ .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = start,
		.l_len = n };
	return fcntl(l->fd, command, lock);
}

/* A random byte of 2^62 is free, unless a process has locked many of them. */
static enum rc
lock_byte(const struct liveness *l, int64_t *name)
{
	struct flock lock;

	for (int tries = 0; tries < TAKE_TRIES; tries++) {
		*name = (int64_t)(uuid_bits() >> 2) << 32 | uuid_bits();
		if (*name == 0)
			continue;
		if (lock_bytes(l, F_OFD_SETLK, *name, 1, &lock) == 0)
			return RC_OK;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return liveness_failed(l->file, "lock");
	}
	log_event(LOG_ERROR, "liveness-error", NULL, LOG_S("file", l->file),
	    LOG_S("doing", "lock"),
	    LOG_S("message",
		"another process has locked the whole file; oncectl copy does "
		"so while it runs"));
	return RC_BUSY;
}

enum rc
liveness_open(struct liveness **out, const char *database, unsigned mode)
{
	struct liveness *l;
	enum rc rc = RC_NOMEM;
	int tries, error;

	*out = NULL;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return RC_NOMEM;
	l->fd = -1;
	if (asprintf(&l->file, "%s-lock", database) == -1) {
		l->file = NULL;
		goto out;
	}
	/* Repeats if another process removed the file before it was locked. */
	for (tries = 0; tries < 10; tries++) {
		l->fd = liveness_open_file(l->file, database, mode);
		if (l->fd == -1 && mode == 0 && errno == ENOENT) {
			rc = RC_NOTFOUND;
			goto out;
		}
		if (l->fd == -1) {
			rc = liveness_failed(l->file, "open");
			goto out;
		}
		rc = lock_byte(l, &l->self);
		if (rc != RC_OK)
			goto out;
		if (same_file(l)) {
			*out = l;
			return RC_OK;
		}
		close(l->fd);
		l->fd = -1;
	}
	errno = ENOENT;
	rc = liveness_failed(l->file, "open");
out:
	error = errno;
	liveness_close(l);
	errno = error;
	return rc;
}

void
liveness_close(struct liveness *l)
{
	if (l == NULL)
		return;
	if (l->fd != -1)
		close(l->fd);
	free(l->file);
	free(l);
}

const char *
liveness_name(const struct liveness *l)
{
	return l->file;
}

int64_t
liveness_file(const struct liveness *l)
{
	struct stat st;

	return fstat(l->fd, &st) == 0 ? (int64_t)st.st_ino : 0;
}

uint64_t
liveness_device(const struct liveness *l)
{
	struct stat st;

	return fstat(l->fd, &st) == 0 ? (uint64_t)st.st_dev : 0;
}

int64_t
liveness_self(const struct liveness *l)
{
	return l->self;
}

enum rc
liveness_alive(const struct liveness *l, int64_t owner, bool *alive)
{
	struct flock lock;

	*alive = true;
	if (owner == l->self) /* a process does not see its own lock */
		return RC_OK;
	if (owner <= 0)
		return RC_INVALID;
	if (!same_file(l)) {
		errno = ENOENT;
		return liveness_failed(l->file, "test");
	}
	if (lock_bytes(l, F_OFD_GETLK, owner, 1, &lock) == -1)
		return liveness_failed(l->file, "test");
	*alive = lock.l_type != F_UNLCK;
	return RC_OK;
}

bool
liveness_is_dead(const struct liveness *l, int64_t owner)
{
	bool alive;

	return owner > 0 && liveness_alive(l, owner, &alive) == RC_OK && !alive;
}

bool
liveness_is_alone(const struct liveness *l)
{
	struct flock lock;

	if (!same_file(l))
		return false;
	if (lock_bytes(l, F_OFD_GETLK, 0, 0, &lock) == -1) {
		(void)liveness_failed(l->file, "test");
		return false;
	}
	return lock.l_type == F_UNLCK;
}

enum rc
liveness_take_all(const struct liveness *l)
{
	struct flock lock;

	if (!same_file(l)) {
		errno = ENOENT;
		return liveness_failed(l->file, "lock");
	}
	if (lock_bytes(l, F_OFD_SETLK, 0, 0, &lock) == 0)
		return RC_OK;
	if (errno == EAGAIN || errno == EACCES || errno == EINTR)
		return RC_BUSY;
	return liveness_failed(l->file, "lock");
}
