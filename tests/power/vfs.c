/*
 * The VFS of the power and fault tests.  See vfs.h.
 *
 * Whether SQLite syncs a directory is seen by the call that opens it, which
 * SQLite lets us replace; so nothing here guesses when that should be.
 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "spool.h"
#include "vfs.h"

struct file {
	sqlite3_file base;
	int number;    /* in the trace, or -1: not recorded */
	bool recorded; /* of the directory */
	bool log;
	sqlite3_file *real; /* behind this struct */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs vfs;
static sqlite3_mem_methods real_memory;

/* Guards what follows; a change and its record are one.  Recursive: SQLite may
 * allocate within a call. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char directory[256]; /* "" while nothing is recorded */
static struct disk_trace *trace;
static bool directory_opened;

/* Guards what follows, and nothing else is locked meanwhile: allocations are
 * counted under SQLite's own locks. */
static pthread_mutex_t fault_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vfs_fault fault;
static bool armed, struck;
static unsigned calls[VFS_NCALLS], log_syncs;

static atomic_bool within, spared, short_calls, lies;

/* What the test itself allocates never fails. */
static _Thread_local bool noting;

const char *
vfs_call_name(enum vfs_call call)
{
	static const char *const names[VFS_NCALLS] = {
#define X(name, text) [VFS_##name] = (text),
		VFS_CALLS(X)
#undef X
	};

	return names[call];
}

/* --- faults ------------------------------------------------------------- */

static int
strikes(enum vfs_call call)
{
	int code = SQLITE_OK;

	pthread_mutex_lock(&fault_mutex);
	calls[call]++;
	if (armed && fault.call == call) {
		if (fault.nth > 1)
			fault.nth--;
		else {
			code = fault.code;
			struck = true;
			armed = fault.lasting;
		}
	}
	pthread_mutex_unlock(&fault_mutex);
	return code;
}

static void
count_log_sync(void)
{
	pthread_mutex_lock(&fault_mutex);
	log_syncs++;
	pthread_mutex_unlock(&fault_mutex);
}

static int
fails(const struct file *f, enum vfs_call call)
{
	return f->recorded ? strikes(call) : SQLITE_OK;
}

bool
vfs_no_memory(enum vfs_call call)
{
	if (noting || atomic_load(&spared) || !atomic_load(&within))
		return false;
	return strikes(call) != SQLITE_OK;
}

void
vfs_within(bool yes)
{
	atomic_store(&within, yes);
}

void
vfs_spare_memory(bool yes)
{
	atomic_store(&spared, yes);
}

void
vfs_break(const struct vfs_fault *f)
{
	pthread_mutex_lock(&fault_mutex);
	fault = *f;
	armed = true;
	struck = false;
	pthread_mutex_unlock(&fault_mutex);
}

void
vfs_repair(void)
{
	pthread_mutex_lock(&fault_mutex);
	armed = false;
	pthread_mutex_unlock(&fault_mutex);
}

bool
vfs_struck(void)
{
	bool yes;

	pthread_mutex_lock(&fault_mutex);
	yes = struck;
	pthread_mutex_unlock(&fault_mutex);
	return yes;
}

unsigned
vfs_calls(enum vfs_call call)
{
	unsigned n;

	pthread_mutex_lock(&fault_mutex);
	n = calls[call];
	pthread_mutex_unlock(&fault_mutex);
	return n;
}

unsigned
vfs_log_syncs(void)
{
	unsigned n;

	pthread_mutex_lock(&fault_mutex);
	n = log_syncs;
	pthread_mutex_unlock(&fault_mutex);
	return n;
}

void
vfs_set_lies(bool yes)
{
	atomic_store(&lies, yes);
}

void
vfs_set_short(bool yes)
{
	atomic_store(&short_calls, yes);
}

void
vfs_base(char *dir, size_t size)
{
	snprintf(dir, size, "/dev/shm/oncewrap-power-XXXXXX");
	if (mkdtemp(dir) != NULL)
		return;
	snprintf(dir, size, "%s/oncewrap-power-XXXXXX", spool_default_dir());
	if (mkdtemp(dir) == NULL)
		abort();
}

/* --- recording ---------------------------------------------------------- */

/* The name within the directory that is recorded, or NULL. */
static const char *
name_of(const char *path)
{
	size_t n = strlen(directory);

	if (path == NULL || n == 0 || strncmp(path, directory, n) != 0 ||
	    path[n] != '/')
		return NULL;
	return path + n + 1;
}

/* What is there, as if it had always been. */
static void
record_file(const char *name)
{
	unsigned char buffer[65536];
	char path[768];
	int64_t at = 0;
	size_t n;
	FILE *f;
	int number;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "re");
	if (f == NULL)
		abort();
	disk_trace_add(trace, DISK_CREATE, 0, name, 0, NULL, 0);
	number = disk_trace_find(trace, name);
	while ((n = fread(buffer, 1, sizeof(buffer), f)) > 0) {
		disk_trace_add(trace, DISK_WRITE, number, NULL, at, buffer, n);
		at += (int64_t)n;
	}
	fclose(f);
	disk_trace_add(trace, DISK_SYNC, number, NULL, 0, NULL, 0);
}

void
vfs_watch(const char *dir)
{
	pthread_mutex_lock(&mutex);
	assert(trace == NULL);
	snprintf(directory, sizeof(directory), "%s", dir);
	pthread_mutex_lock(&fault_mutex);
	memset(calls, 0, sizeof(calls));
	log_syncs = 0;
	pthread_mutex_unlock(&fault_mutex);
	pthread_mutex_unlock(&mutex);
}

void
vfs_record(const char *dir)
{
	struct dirent *e;
	DIR *d;

	pthread_mutex_lock(&mutex);
	vfs_watch(dir);
	trace = disk_trace_new();
	d = opendir(dir);
	if (d == NULL)
		abort();
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			record_file(e->d_name);
	closedir(d);
	disk_trace_add(trace, DISK_SYNC_NAMES, 0, NULL, 0, NULL, 0);
	pthread_mutex_unlock(&mutex);
}

struct disk_trace *
vfs_record_end(void)
{
	struct disk_trace *t;

	pthread_mutex_lock(&mutex);
	t = trace;
	trace = NULL;
	directory[0] = '\0';
	pthread_mutex_unlock(&mutex);
	vfs_repair();
	return t;
}

struct disk_trace *
vfs_trace(void)
{
	struct disk_trace *copy = disk_trace_new();
	const struct disk_event *e;
	size_t i;

	pthread_mutex_lock(&mutex);
	for (i = 0; i < trace->n; i++) {
		e = &trace->event[i];
		disk_trace_add(
		    copy, e->what, e->file, e->name, e->offset, e->data, e->n);
	}
	pthread_mutex_unlock(&mutex);
	return copy;
}

size_t
vfs_position(void)
{
	size_t n;

	pthread_mutex_lock(&mutex);
	n = trace != NULL ? trace->n : 0;
	pthread_mutex_unlock(&mutex);
	return n;
}

/* Under the mutex, which is released. */
static int
done(int code)
{
	pthread_mutex_unlock(&mutex);
	return code;
}

static void
note(enum disk_what what, int file, const char *name, int64_t offset,
    const void *data, size_t n)
{
	noting = true;
	disk_trace_add(trace, what, file, name, offset, data, n);
	noting = false;
}

static void
record(const struct file *f, enum disk_what what, int64_t offset,
    const void *data, size_t n)
{
	if (trace != NULL && f->number >= 0)
		note(what, f->number, NULL, offset, data, n);
}

/* After a call that may have synced the directory. */
static void
record_names(void)
{
	if (trace != NULL && directory_opened)
		note(DISK_SYNC_NAMES, 0, NULL, 0, NULL, 0);
	directory_opened = false;
}

/* --- files -------------------------------------------------------------- */

static struct file *
file_of(sqlite3_file *f)
{
	return (struct file *)(void *)f;
}

static int
file_close(sqlite3_file *base)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xClose(f->real);
}

static int
file_read(sqlite3_file *base, void *data, int n, sqlite3_int64 offset)
{
	struct file *f = file_of(base);
	int code = fails(f, VFS_READ);

	if (code != SQLITE_OK)
		return code;
	return f->real->pMethods->xRead(f->real, data, n, offset);
}

static int
file_write(sqlite3_file *base, const void *data, int n, sqlite3_int64 offset)
{
	struct file *f = file_of(base);
	int code, written = n;

	if (!f->recorded)
		return f->real->pMethods->xWrite(f->real, data, n, offset);
	pthread_mutex_lock(&mutex);
	code = strikes(VFS_WRITE);
	if (code != SQLITE_OK)
		written = fault.partly ? n / 2 : 0;
	if (written > 0) {
		if (f->real->pMethods->xWrite(f->real, data, written, offset) !=
		    SQLITE_OK)
			abort();
		record(f, DISK_WRITE, offset, data, (size_t)written);
	}
	return done(code);
}

static int
file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct file *f = file_of(base);
	int code;

	if (!f->recorded)
		return f->real->pMethods->xTruncate(f->real, size);
	pthread_mutex_lock(&mutex);
	code = strikes(VFS_TRUNCATE);
	if (code == SQLITE_OK)
		code = f->real->pMethods->xTruncate(f->real, size);
	if (code == SQLITE_OK)
		record(f, DISK_TRUNCATE, size, NULL, 0);
	return done(code);
}

static int
file_sync(sqlite3_file *base, int flags)
{
	struct file *f = file_of(base);
	int code;

	if (!f->recorded || atomic_load(&lies))
		return SQLITE_OK;
	pthread_mutex_lock(&mutex);
	if (f->log)
		count_log_sync();
	code = strikes(VFS_SYNC);
	if (code != SQLITE_OK)
		record(f, DISK_SYNC_LOST, 0, NULL, 0);
	else {
		code = f->real->pMethods->xSync(f->real, flags);
		if (code == SQLITE_OK)
			record(f, DISK_SYNC, 0, NULL, 0);
		record_names();
	}
	return done(code);
}

static int
file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct file *f = file_of(base);
	int code = fails(f, VFS_SIZE);

	if (code != SQLITE_OK)
		return code;
	return f->real->pMethods->xFileSize(f->real, size);
}

static int
file_lock(sqlite3_file *base, int level)
{
	struct file *f = file_of(base);
	int code = fails(f, VFS_LOCK);

	if (code != SQLITE_OK)
		return code;
	return f->real->pMethods->xLock(f->real, level);
}

/* What fails to unlock has unlocked: that it is still locked would be
 * another process's. */
static int
file_unlock(sqlite3_file *base, int level)
{
	struct file *f = file_of(base);
	int code = fails(f, VFS_UNLOCK);
	int real = f->real->pMethods->xUnlock(f->real, level);

	return code != SQLITE_OK ? code : real;
}

static int
file_check_reserved_lock(sqlite3_file *base, int *yes)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xCheckReservedLock(f->real, yes);
}

static int
file_control(sqlite3_file *base, int op, void *arg)
{
	struct file *f = file_of(base);

	if (op == SQLITE_FCNTL_SIZE_HINT) /* would write unseen */
		return SQLITE_OK;
	return f->real->pMethods->xFileControl(f->real, op, arg);
}

static int
file_sector_size(sqlite3_file *base)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xSectorSize(f->real);
}

static int
file_characteristics(sqlite3_file *base)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xDeviceCharacteristics(f->real);
}

static int
file_shm_map(
    sqlite3_file *base, int page, int size, int extend, void volatile **p)
{
	struct file *f = file_of(base);
	int code = fails(f, VFS_SHM_MAP);

	*p = NULL;
	if (code != SQLITE_OK)
		return code;
	return f->real->pMethods->xShmMap(f->real, page, size, extend, p);
}

static int
file_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
	struct file *f = file_of(base);
	int code;

	if ((flags & SQLITE_SHM_LOCK) != 0) {
		code = fails(f, VFS_SHM_LOCK);
		if (code != SQLITE_OK)
			return code;
	}
	return f->real->pMethods->xShmLock(f->real, offset, n, flags);
}

static void
file_shm_barrier(sqlite3_file *base)
{
	struct file *f = file_of(base);

	f->real->pMethods->xShmBarrier(f->real);
}

static int
file_shm_unmap(sqlite3_file *base, int delete_it)
{
	struct file *f = file_of(base);

	return f->real->pMethods->xShmUnmap(f->real, delete_it);
}

/* Version 2: without mapping of the database itself, which would be read
 * unseen. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_reserved_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector_size,
	.xDeviceCharacteristics = file_characteristics,
	.xShmMap = file_shm_map,
	.xShmLock = file_shm_lock,
	.xShmBarrier = file_shm_barrier,
	.xShmUnmap = file_shm_unmap,
};

/* --- the VFS ------------------------------------------------------------ */

static int
vfs_open(sqlite3_vfs *v, const char *path, sqlite3_file *base, int flags,
    int *out_flags)
{
	struct file *f = file_of(base);
	const char *name;
	int code;

	(void)v;
	memset(f, 0, sizeof(*f));
	f->number = -1;
	f->real = (sqlite3_file *)(void *)(f + 1);
	pthread_mutex_lock(&mutex);
	name = name_of(path);
	if (name != NULL && (code = strikes(VFS_OPEN)) != SQLITE_OK)
		return done(code);
	code = real_vfs->xOpen(real_vfs, path, f->real, flags, out_flags);
	if (f->real->pMethods != NULL)
		f->base.pMethods = &methods;
	if (code == SQLITE_OK && name != NULL) {
		f->recorded = true;
		f->log = (flags & SQLITE_OPEN_WAL) != 0;
	}
	if (f->recorded && trace != NULL) {
		f->number = disk_trace_find(trace, name);
		if (f->number < 0) {
			note(DISK_CREATE, 0, name, 0, NULL, 0);
			f->number = disk_trace_find(trace, name);
		}
	}
	return done(code);
}

static int
vfs_delete(sqlite3_vfs *v, const char *path, int sync_directory)
{
	const char *name;
	int code;

	(void)v;
	pthread_mutex_lock(&mutex);
	name = name_of(path);
	if (name == NULL)
		return done(real_vfs->xDelete(real_vfs, path, 0));
	code = strikes(VFS_DELETE);
	if (code != SQLITE_OK)
		return done(code);
	code = real_vfs->xDelete(real_vfs, path, sync_directory);
	if (code == SQLITE_OK && trace != NULL &&
	    disk_trace_find(trace, name) >= 0)
		note(DISK_DELETE, 0, name, 0, NULL, 0);
	record_names();
	return done(code);
}

static int
vfs_access(sqlite3_vfs *v, const char *path, int flags, int *yes)
{
	int code = SQLITE_OK;

	(void)v;
	pthread_mutex_lock(&mutex);
	if (name_of(path) != NULL)
		code = strikes(VFS_ACCESS);
	if (code == SQLITE_OK)
		code = real_vfs->xAccess(real_vfs, path, flags, yes);
	return done(code);
}

/* --- calls of the system that SQLite lets us replace -------------------- */

typedef int open_directory(const char *, int *);
typedef ssize_t read_at(int, void *, size_t, off_t);
typedef ssize_t write_at(int, const void *, size_t, off_t);

static open_directory *real_open_directory;
static read_at *real_read_at;
static write_at *real_write_at;

/* Called within file_sync() or vfs_delete(): under the mutex, if the
 * directory is the one recorded. */
static int
note_directory(const char *path, int *fd)
{
	directory_opened = true;
	return real_open_directory(path, fd);
}

static ssize_t
read_half(int fd, void *data, size_t n, off_t offset)
{
	if (atomic_load(&short_calls) && n > 1)
		n /= 2;
	return real_read_at(fd, data, n, offset);
}

static ssize_t
write_half(int fd, const void *data, size_t n, off_t offset)
{
	if (atomic_load(&short_calls) && n > 1)
		n /= 2;
	return real_write_at(fd, data, n, offset);
}

static sqlite3_syscall_ptr
replace(const char *name, sqlite3_syscall_ptr with)
{
	sqlite3_syscall_ptr old = real_vfs->xGetSystemCall(real_vfs, name);

	if (old != NULL &&
	    real_vfs->xSetSystemCall(real_vfs, name, with) != SQLITE_OK)
		abort();
	return old;
}

/* --- memory ------------------------------------------------------------- */

static void *
allocate(int n)
{
	return vfs_no_memory(VFS_MEMORY) ? NULL : real_memory.xMalloc(n);
}

static void *
reallocate(void *p, int n)
{
	return vfs_no_memory(VFS_MEMORY) ? NULL : real_memory.xRealloc(p, n);
}

void
vfs_install(void)
{
	sqlite3_mem_methods memory;
	sqlite3_syscall_ptr p;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory) != SQLITE_OK)
		abort();
	memory = real_memory;
	memory.xMalloc = allocate;
	memory.xRealloc = reallocate;
	if (sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) != SQLITE_OK)
		abort();

	real_vfs = sqlite3_vfs_find(NULL);
	vfs = *real_vfs;
	vfs.pNext = NULL;
	vfs.zName = "once-power";
	vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
	vfs.xOpen = vfs_open;
	vfs.xDelete = vfs_delete;
	vfs.xAccess = vfs_access;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		abort();

	p = replace("openDirectory", (sqlite3_syscall_ptr)note_directory);
	real_open_directory = (open_directory *)p;
	if (p == NULL)
		abort();
	p = replace("pread64", (sqlite3_syscall_ptr)read_half);
	if (p == NULL)
		p = replace("pread", (sqlite3_syscall_ptr)read_half);
	real_read_at = (read_at *)p;
	p = replace("pwrite64", (sqlite3_syscall_ptr)write_half);
	if (p == NULL)
		p = replace("pwrite", (sqlite3_syscall_ptr)write_half);
	real_write_at = (write_at *)p;
}
