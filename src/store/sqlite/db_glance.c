/*
 * SQLite: reads that wait for nothing, of what is in memory.
 *
 * SQLite reads files by pread(2), which it lets a program replace
 * (xSetSystemCall).  While a thread glances, preadv2(2) with RWF_NOWAIT takes
 * its place, so a page that would have to come from the disk is an error, and
 * the whole read is made again by a thread that may wait.  A file system
 * without that flag lets no thread glance, unless it is one in memory.  The
 * pauses of SQLite are left out: it makes some when the index of the log is
 * changed while it is read, and gives up after a hundred tries.
 */
#include "config.h"

#include <sys/uio.h>
#include <sys/vfs.h>

#include <errno.h>
#include <unistd.h>

#include <linux/magic.h>

#include "db_impl.h"

/* What a thread's glance has met. */
static _Thread_local bool glances;
static _Thread_local unsigned reads;

typedef ssize_t pread_call(int fd, void *data, size_t n, off_t offset);

static pread_call *true_pread;
static int (*true_sleep)(sqlite3_vfs *vfs, int us);

/* It has no disk. */
static bool
is_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	    ((unsigned long)fs.f_type == TMPFS_MAGIC ||
		(unsigned long)fs.f_type == RAMFS_MAGIC);
}

static ssize_t
pread_memory(int fd, void *data, size_t n, off_t offset)
{
#if defined(HAVE_PREADV2) && defined(RWF_NOWAIT)
	const struct iovec v = { .iov_base = data, .iov_len = n };

	return preadv2(fd, &v, 1, offset, RWF_NOWAIT);
#else
	(void)fd;
	(void)data;
	(void)n;
	(void)offset;
	errno = EOPNOTSUPP;
	return -1;
#endif
}

/* EAGAIN is, for SQLite, an error of the read. */
static ssize_t
glance_pread(int fd, void *data, size_t n, off_t offset)
{
	ssize_t got;

	if (!glances)
		return true_pread(fd, data, n, offset);
	reads++;
	got = pread_memory(fd, data, n, offset);
	if (got == -1 && (errno == EOPNOTSUPP || errno == ENOSYS) &&
	    is_in_memory(fd))
		return true_pread(fd, data, n, offset);
	/* Linux 5.9 and 5.10 say so of a page that is not in memory, and SQLite
	 * would take zeros for it.  Nothing is read at the end of a file. */
	if (got == 0) {
		errno = EAGAIN;
		return -1;
	}
	return got;
}

static int
glance_sleep(sqlite3_vfs *vfs, int us)
{
	return glances ? us : true_sleep(vfs, us);
}

void
db_glance_setup(void)
{
	static const char *const names[] = { "pread", "pread64" };
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	sqlite3_syscall_ptr call;

	if (vfs == NULL || vfs->iVersion < 3)
		return;
	true_sleep = vfs->xSleep;
	vfs->xSleep = glance_sleep;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((call = vfs->xGetSystemCall(vfs, names[i])) == NULL)
			continue;
		true_pread = (pread_call *)call;
		(void)vfs->xSetSystemCall(
		    vfs, names[i], (sqlite3_syscall_ptr)glance_pread);
	}
}

void
db_glance_begin(struct db *db)
{
	glances = db->glances = true;
	db->quiet = true;
	db->busy_timeout = 0;
}

void
db_glance_end(struct db *db)
{
	glances = db->glances = db->quiet = false;
}

bool
db_glances(const struct db *db)
{
	return db->glances;
}

unsigned
db_glance_reads(void)
{
	return reads;
}
