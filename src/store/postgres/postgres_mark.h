/*
 * The mark of a host: 128 random bits in its lock file (see liveness.h).
 *
 * The file also says where the mark was made: in which machine, inode, device
 * and boot.  A copy of the file is elsewhere, and gets a mark of its own.  The
 * number of a device may change from boot to boot, so it counts only in the
 * boot that the file names.  A disk that was copied as a whole cannot be told
 * from the disk of a host that has booted: both keep the mark.  A process that
 * was begun before the copy, and lives on the other machine, has not held its
 * lock here; the device of the file tells that, in most cases.
 */
#ifndef POSTGRES_MARK_H
#define POSTGRES_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

#define POSTGRES_MARK_LEN 32

/* Where a lock file is. */
struct postgres_mark {
	const char *machine; /* 32 digits */
	const char *boot;    /* the kernel's id of it; "": not known */
	int64_t inode;
	uint64_t device;
};

/*
 * Remembers that a process holds its lock in that file, which has a mark; the
 * device is that of the file.  Synced.  RC_IO: errno says why; RC_LOST: there
 * is no mark.  Of some 400 processes the last ones are known.
 */
enum rc postgres_mark_add(const char *file, int64_t owner, uint64_t device);

/* Whether a process has held its lock in that file, on that device: then it is
 * gone if the lock is free, in whatever boot that was. */
bool postgres_mark_has(const char *file, int64_t owner, uint64_t device);

/*
 * Reads the mark of the lock file, hexadecimal digits.  make: makes it if the
 * file has none, or one that was made elsewhere, and syncs the file; else
 * RC_NOTFOUND.  The caller has the file open, and holds one of its bytes but
 * the first.  RC_LOST: the file of that name is another one.  RC_IO: errno says
 * why.
 */
enum rc postgres_mark_read(const char *file, const struct postgres_mark *at,
    bool make, char mark[POSTGRES_MARK_LEN + 1]);

#endif
