/*
 * A file system for SQLite whose write-ahead logs fail on demand: the sync, or
 * any write past a size; and the sync of databases, and reading a page of them;
 * and databases that may only be read.
 * Becomes the default one; included by tests only.
 */
#ifndef FAULTY_VFS_H
#define FAULTY_VFS_H

#include <stdatomic.h>
#include <string.h>

#include <sqlite3.h>

static atomic_int faulty_syncs;      /* so many fail; -1: all */
static atomic_long faulty_size;      /* 0: no limit */
static atomic_int faulty_syncs_seen; /* of logs, failed ones included */
static atomic_int faulty_base_syncs; /* the same of databases */
static atomic_int faulty_base_syncs_seen;
static atomic_long faulty_page;    /* its place in databases; 0: none */
static atomic_int faulty_readonly; /* databases are opened so */

struct faulty_file {
	sqlite3_file base;
	int log, base_file;
	sqlite3_file *real;
};

static sqlite3_vfs faulty_vfs;

static sqlite3_file *
real_of(sqlite3_file *f)
{
	return ((struct faulty_file *)(void *)f)->real;
}

static int
faulty_is_log(sqlite3_file *f)
{
	return ((struct faulty_file *)(void *)f)->log;
}

#define PASS(name, parameters, arguments)                       \
	static int faulty_##name parameters                     \
	{                                                       \
		return real_of(f)->pMethods->x##name arguments; \
	}

PASS(Close, (sqlite3_file * f), (real_of(f)))
PASS(Truncate, (sqlite3_file * f, sqlite3_int64 n), (real_of(f), n))
PASS(FileSize, (sqlite3_file * f, sqlite3_int64 *n), (real_of(f), n))
PASS(Lock, (sqlite3_file * f, int l), (real_of(f), l))
PASS(Unlock, (sqlite3_file * f, int l), (real_of(f), l))
PASS(CheckReservedLock, (sqlite3_file * f, int *r), (real_of(f), r))
PASS(FileControl, (sqlite3_file * f, int op, void *p), (real_of(f), op, p))
PASS(SectorSize, (sqlite3_file * f), (real_of(f)))
PASS(DeviceCharacteristics, (sqlite3_file * f), (real_of(f)))
PASS(ShmMap, (sqlite3_file * f, int i, int n, int e, void volatile **p),
    (real_of(f), i, n, e, p))
PASS(ShmLock, (sqlite3_file * f, int o, int n, int l), (real_of(f), o, n, l))
PASS(ShmUnmap, (sqlite3_file * f, int d), (real_of(f), d))

static void
faulty_ShmBarrier(sqlite3_file *f)
{
	real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int
faulty_Read(sqlite3_file *f, void *p, int n, sqlite3_int64 offset)
{
	if (((struct faulty_file *)(void *)f)->base_file && offset != 0 &&
	    offset == atomic_load(&faulty_page))
		return SQLITE_IOERR_READ;
	return real_of(f)->pMethods->xRead(real_of(f), p, n, offset);
}

static int
faulty_Write(sqlite3_file *f, const void *p, int n, sqlite3_int64 offset)
{
	long size = atomic_load(&faulty_size);

	if (faulty_is_log(f) && size != 0 && offset + n > size)
		return SQLITE_FULL;
	return real_of(f)->pMethods->xWrite(real_of(f), p, n, offset);
}

/* Whether this one is to fail; counts down what is not without end. */
static int
faulty_is_due(atomic_int *fail)
{
	int left = atomic_load(fail);

	if (left > 0)
		atomic_fetch_sub(fail, 1);
	return left != 0;
}

static int
faulty_Sync(sqlite3_file *f, int flags)
{
	if (faulty_is_log(f)) {
		atomic_fetch_add(&faulty_syncs_seen, 1);
		if (faulty_is_due(&faulty_syncs))
			return SQLITE_IOERR_FSYNC;
	}
	if (((struct faulty_file *)(void *)f)->base_file) {
		atomic_fetch_add(&faulty_base_syncs_seen, 1);
		if (faulty_is_due(&faulty_base_syncs))
			return SQLITE_IOERR_FSYNC;
	}
	return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static const sqlite3_io_methods faulty_methods = {
	.iVersion = 2,
	.xClose = faulty_Close,
	.xRead = faulty_Read,
	.xWrite = faulty_Write,
	.xTruncate = faulty_Truncate,
	.xSync = faulty_Sync,
	.xFileSize = faulty_FileSize,
	.xLock = faulty_Lock,
	.xUnlock = faulty_Unlock,
	.xCheckReservedLock = faulty_CheckReservedLock,
	.xFileControl = faulty_FileControl,
	.xSectorSize = faulty_SectorSize,
	.xDeviceCharacteristics = faulty_DeviceCharacteristics,
	.xShmMap = faulty_ShmMap,
	.xShmLock = faulty_ShmLock,
	.xShmBarrier = faulty_ShmBarrier,
	.xShmUnmap = faulty_ShmUnmap,
};

static int
faulty_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
	sqlite3_vfs *unix_vfs = vfs->pAppData;
	struct faulty_file *file = (struct faulty_file *)(void *)f;
	int code;

	file->real = (sqlite3_file *)(void *)(file + 1);
	file->log = (flags & SQLITE_OPEN_WAL) != 0;
	file->base_file = (flags & SQLITE_OPEN_MAIN_DB) != 0;
	/* As SQLite does by itself where only that is permitted. */
	if (file->base_file && atomic_load(&faulty_readonly) != 0) {
		flags &= ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
		flags |= SQLITE_OPEN_READONLY;
	}
	code = unix_vfs->xOpen(unix_vfs, name, file->real, flags, out);
	f->pMethods = file->real->pMethods != NULL ? &faulty_methods : NULL;
	return code;
}

static void
faulty_heal(void)
{
	atomic_store(&faulty_syncs, 0);
	atomic_store(&faulty_base_syncs, 0);
	atomic_store(&faulty_size, 0);
	atomic_store(&faulty_page, 0);
	atomic_store(&faulty_readonly, 0);
}

static int
faulty_register(void)
{
	sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");

	if (unix_vfs == NULL)
		return -1;
	faulty_vfs = *unix_vfs;
	faulty_vfs.zName = "faulty";
	faulty_vfs.pNext = NULL;
	faulty_vfs.pAppData = unix_vfs;
	faulty_vfs.szOsFile =
	    (int)sizeof(struct faulty_file) + unix_vfs->szOsFile;
	faulty_vfs.xOpen = faulty_open;
	return sqlite3_vfs_register(&faulty_vfs, 1) == SQLITE_OK ? 0 : -1;
}

#endif
