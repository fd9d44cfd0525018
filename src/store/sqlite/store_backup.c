/*
 * A copy of the store while it is in use.
 *
 * It is made under another name, FILE.partial, synced, and given its name last:
 * FILE is whole, or is not there.  A process that is killed leaves FILE.partial
 * behind, and the next backup to that name removes it: a lock of flock(2) tells
 * whether another process still writes it.
 */
#include "config.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "dbfile.h"
#include "store_operator.h"
#include "store_impl.h"

/* <linux/fs.h> has it, beside much that stdio.h defines too. */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

struct backup {
	struct store *store;
	const struct store_backup *what;
	char *file, *partial; /* resolved names */
	int fd;               /* FILE.partial, locked; -1 */
	bool mine;            /* FILE.partial is to be removed */
	uint64_t log_at_first;
	char *why;
	size_t size;
};

static enum rc __attribute__((format(printf, 3, 4)))
backup_fail(struct backup *b, enum rc rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(b->why, b->size, format, args);
	va_end(args);
	return rc;
}

static enum rc
fail_errno(struct backup *b, const char *name)
{
	const int error = errno;

	return backup_fail(b,
	    error == ENOSPC || error == EDQUOT ? RC_FULL : RC_IO, "%s: %s",
	    name, strerror(error));
}

/* --- the names ---------------------------------------------------------- */

/* Refuses a name of the store's own files. */
static enum rc
check_own(struct backup *b)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-lock",
		"-journal" };
	const size_t n = strlen(b->store->file);
	struct stat own, st;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strncmp(b->file, b->store->file, n) == 0 &&
		    strcmp(b->file + n, suffixes[i]) == 0)
			return backup_fail(b, RC_INVALID,
			    "%s: is a file of the database itself", b->file);
	if (stat(b->store->file, &own) == 0 && stat(b->file, &st) == 0 &&
	    own.st_dev == st.st_dev && own.st_ino == st.st_ino)
		return backup_fail(
		    b, RC_INVALID, "%s: is the database itself", b->file);
	return RC_OK;
}

/* Whether FILE may get its name: it is not there, or may be replaced. */
static enum rc
check_there(struct backup *b)
{
	struct stat st;

	if (lstat(b->file, &st) == -1)
		return errno == ENOENT ? RC_OK : fail_errno(b, b->file);
	if (!S_ISREG(st.st_mode))
		return backup_fail(
		    b, RC_EXISTS, "%s: exists, and is no plain file", b->file);
	if (!b->what->replace)
		return backup_fail(
		    b, RC_EXISTS, "%s: exists; --yes replaces it", b->file);
	return RC_OK;
}

/* A log or journal beside FILE would be played into the copy when it is
 * opened. */
static enum rc
check_beside(struct backup *b)
{
	static const char *const suffixes[] = { "-wal", "-journal", "-shm" };
	struct stat st;
	char *name;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < 3 && rc == RC_OK; i++) {
		if (asprintf(&name, "%s%s", b->file, suffixes[i]) == -1)
			return backup_fail(
			    b, RC_NOMEM, "%s", rc_text(RC_NOMEM));
		if (lstat(name, &st) == 0)
			rc = backup_fail(b, RC_EXISTS,
			    "%s: exists, and would be taken for a part of the "
			    "copy; %s is in use, or the file was left over",
			    name, b->file);
		free(name);
	}
	return rc;
}

/* Names the folder, which cannot be used. */
static enum rc
fail_folder(struct backup *b)
{
	const char *file = b->what->file, *slash = strrchr(file, '/');
	const int n = slash == NULL ? 0 : (int)(slash - file);

	return backup_fail(b, RC_IO, "%s: the folder for the copy, %.*s: %s",
	    file, n > 0 ? n : 1,
	    n > 0               ? file
		: slash != NULL ? "/"
				: ".",
	    strerror(errno));
}

static enum rc
name_files(struct backup *b)
{
	enum rc rc;

	b->file = dbfile_resolve(b->what->file, b->why, b->size);
	if (b->file == NULL)
		return fail_folder(b);
	if (b->file[strlen(b->file) - 1] == '/')
		return backup_fail(b, RC_INVALID,
		    "%s: is a folder; name a file", b->what->file);
	if (asprintf(&b->partial, "%s.partial", b->file) == -1) {
		b->partial = NULL;
		return backup_fail(b, RC_NOMEM, "%s", rc_text(RC_NOMEM));
	}
	if ((rc = check_own(b)) == RC_OK && (rc = check_there(b)) == RC_OK)
		rc = check_beside(b);
	return rc;
}

/* --- FILE.partial ------------------------------------------------------- */

/* Whether a backup of this user may have made a file of that user.  A file of
 * another user may be open there, and what is written to it would be read. */
static bool
is_owner(const struct backup *b, uid_t uid)
{
	struct stat st;

	if (uid == geteuid())
		return true;
	return geteuid() == 0 && stat(b->store->file, &st) == 0 &&
	    uid == st.st_uid;
}

/* Whether the open file is a plain one of ours that still has its name. */
static bool
backup_is_ours(const struct backup *b)
{
	struct stat st, now;

	return fstat(b->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && is_owner(b, st.st_uid) &&
	    lstat(b->partial, &now) == 0 && now.st_dev == st.st_dev &&
	    now.st_ino == st.st_ino;
}

/* Makes the file, for root with the owner of the database, so that it can be
 * put in the database's place as it is. */
static enum rc
make_partial(struct backup *b)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	struct stat st;

	b->fd = open(b->partial, flags | O_CREAT | O_EXCL, 0600);
	if (b->fd == -1 && errno == EEXIST)
		b->fd = open(b->partial, flags);
	if (b->fd == -1)
		return fail_errno(b, b->partial);
	if (flock(b->fd, LOCK_EX | LOCK_NB) == -1)
		return backup_fail(
		    b, RC_BUSY, "%s: another backup writes it", b->partial);
	if (!backup_is_ours(b))
		return backup_fail(b, RC_EXISTS,
		    "%s: exists, and was not left by a backup of this user",
		    b->partial);
	b->mine = true;
	if (ftruncate(b->fd, 0) == -1 || fchmod(b->fd, 0600) == -1 ||
	    stat(b->store->file, &st) == -1 ||
	    (geteuid() == 0 && fchown(b->fd, st.st_uid, st.st_gid) == -1))
		return fail_errno(b, b->partial);
	return RC_OK;
}

static enum rc
sync_folder(struct backup *b)
{
	char *folder =
	    strndup(b->file, (size_t)(strrchr(b->file, '/') + 1 - b->file));
	enum rc rc = RC_OK;
	int fd;

	if (folder == NULL)
		return backup_fail(b, RC_NOMEM, "%s", rc_text(RC_NOMEM));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || fsync(fd) == -1)
		rc = fail_errno(b, folder);
	if (fd != -1)
		close(fd);
	free(folder);
	return rc;
}

/* Gives the copy its name, without replacing what came there meanwhile. */
static int
rename_new(const struct backup *b)
{
	if (syscall(SYS_renameat2, AT_FDCWD, b->partial, AT_FDCWD, b->file,
		RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* The file system cannot: then by a second name. */
	if (link(b->partial, b->file) == -1)
		return -1;
	return unlink(b->partial);
}

static enum rc
publish_backup(struct backup *b)
{
	int result;

	if (fsync(b->fd) == -1)
		return fail_errno(b, b->partial);
	result = b->what->replace ? rename(b->partial, b->file) : rename_new(b);
	if (result == -1)
		return fail_errno(b, b->file);
	b->mine = false;
	return sync_folder(b);
}

/* --- the copy ----------------------------------------------------------- */

/* The length of the log's file (bytes), which is never less than what is in
 * use. */
static uint64_t
log_bytes(const struct backup *b)
{
	return (uint64_t)store_files_size(b->store->file, "-wal");
}

/* Looks at what may end the copy early. */
static enum rc
may_go_on(void *arg)
{
	struct backup *b = arg;
	const uint64_t log = log_bytes(b);

	if (b->what->stop != NULL && atomic_load(b->what->stop))
		return backup_fail(
		    b, RC_CLOSED, "interrupted; no copy was made");
	if (log <= b->what->max_log || log <= b->log_at_first)
		return RC_OK;
	return backup_fail(b, RC_LIMIT,
	    "so much was written meanwhile that the log of the database comes "
	    "near max_wal; no copy was made: try when less is written, or "
	    "raise max_wal");
}

static enum rc
backup_copy(struct backup *b, uint64_t *bytes)
{
	struct store_reader *reader;
	struct stat st;
	enum rc rc;

	rc = store_reader_take(b->store, &reader);
	if (rc != RC_OK)
		return backup_fail(
		    b, rc, "%s: %s", b->store->file, rc_text(rc));
	b->log_at_first = log_bytes(b);
	rc = db_copy(reader->db, b->partial, may_go_on, b, bytes);
	store_reader_give(b->store, reader);
	if (rc == RC_OK &&
	    (fstat(b->fd, &st) == -1 || (uint64_t)st.st_size != *bytes))
		rc = backup_fail(
		    b, RC_IO, "%s: is not as long as was written", b->partial);
	if (rc == RC_OK)
		rc = store_guard_copied(&b->store->guard, b->fd);
	if (rc != RC_OK && b->why[0] == '\0')
		(void)backup_fail(b, rc, "%s: %s", b->partial, rc_text(rc));
	return rc;
}

enum rc
sqlite_backup(struct store *store, const struct store_backup *what,
    struct store_copied *copied, char *why, size_t size)
{
	struct backup b = {
		.store = store, .what = what, .fd = -1, .why = why, .size = size
	};
	enum rc rc;

	why[0] = '\0';
	copied->at_wall = clock_wall();
	if ((rc = name_files(&b)) == RC_OK && (rc = make_partial(&b)) == RC_OK)
		rc = backup_copy(&b, &copied->bytes);
	if (rc == RC_OK && (rc = may_go_on(&b)) == RC_OK)
		rc = publish_backup(&b);
	if (b.mine)
		(void)unlink(b.partial);
	if (b.fd != -1)
		close(b.fd);
	free(b.partial);
	free(b.file);
	return rc;
}
