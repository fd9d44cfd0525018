/*
 * A VFS between SQLite and the system's: it records what is done to the files
 * of one directory, and makes calls fail.  Also for unit tests, which include
 * it before store_fixture.h.
 */
#ifndef VFS_H
#define VFS_H

#include <stdbool.h>

#include "disk.h"

/* The calls that can fail, each counted by itself.  MEMORY is SQLite's own
 * allocation; ours is what the program is linked with (see faults.c). */
#define VFS_CALLS(X)                           \
	X(OPEN, "open")                        \
	X(DELETE, "delete")                    \
	X(ACCESS, "access")                    \
	X(READ, "read")                        \
	X(WRITE, "write")                      \
	X(TRUNCATE, "truncate")                \
	X(SYNC, "sync")                        \
	X(SIZE, "size")                        \
	X(LOCK, "lock")                        \
	X(UNLOCK, "unlock")                    \
	X(SHM_MAP, "map the index of the log") \
	X(SHM_LOCK, "lock the log")            \
	X(MEMORY, "SQLite's memory")           \
	X(OUR_MEMORY, "our memory")

enum vfs_call {
#define X(name, text) VFS_##name,
	VFS_CALLS(X)
#undef X
	    VFS_NCALLS
};

const char *vfs_call_name(enum vfs_call);

/* Before anything else of SQLite: makes it the default. */
void vfs_install(void);

/* Makes a new directory for the test, in memory if there is such a place. */
void vfs_base(char *dir, size_t size);

/*
 * From now on what is done to the files of dir is recorded; those that are
 * there are what must be there.  Files elsewhere are only passed on, and never
 * synced: they are looked at, and thrown away.
 */
void vfs_record(const char *dir);

/* The same, and nothing is recorded: calls are counted, and can fail. */
void vfs_watch(const char *dir);

/* Ends either; the caller frees the trace (NULL after vfs_watch()). */
struct disk_trace *vfs_record_end(void);

/* A copy of the trace so far, for the caller to free; and its length. */
struct disk_trace *vfs_trace(void);
size_t vfs_position(void);

/* --- faults, in the directory that is recorded -------------------------- */

struct vfs_fault {
	enum vfs_call call;
	unsigned nth; /* 1: the first from now on */
	int code;     /* of SQLite */
	bool partly;  /* a write writes half of it first */
	bool lasting; /* until vfs_repair() */
};

void vfs_break(const struct vfs_fault *);
void vfs_repair(void);

/* Whether the fault has struck since vfs_break(). */
bool vfs_struck(void);

/* Allocations fail only while the thread of the test is within a call of the
 * store: what else allocates is the test. */
void vfs_within(bool);

/* While yes, no allocation fails. */
void vfs_spare_memory(bool yes);

/* Whether this allocation is to fail; counts it. */
bool vfs_no_memory(enum vfs_call);

/* Calls since vfs_record() or vfs_watch(); and syncs of the log alone. */
unsigned vfs_calls(enum vfs_call);
unsigned vfs_log_syncs(void);

/* A sync does nothing, and says that it was done. */
void vfs_set_lies(bool);

/* The system reads and writes half of what it is asked for. */
void vfs_set_short(bool);

#endif
