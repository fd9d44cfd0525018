/*
 * A disk that forgets what was not synced: a model.
 *
 * A trace is what was done to the files of one directory, in order.  A disk is
 * the state after the first so many events of a trace: what must be there, and
 * what may be there or not, in units of a sector of a write, a truncation, a
 * name made or removed.  Which units survive is the caller's choice.
 *
 * A sync that failed loses nothing for sure and keeps nothing for sure, for
 * ever: later syncs that succeed do not cover what it covered (so it is on
 * Linux, where pages are clean after an error).  Bytes of a sector that a
 * write does not name stay as they are: SQLite's "powersafe overwrite".
 */
#ifndef DISK_H
#define DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_SECTOR 512

enum disk_what {
	DISK_CREATE,     /* name, file */
	DISK_DELETE,     /* name */
	DISK_SYNC_NAMES, /* of the directory */
	DISK_WRITE,      /* file, offset, n, data */
	DISK_TRUNCATE,   /* file, offset: the new size */
	DISK_SYNC,       /* file */
	DISK_SYNC_LOST   /* file: it failed */
};

struct disk_event {
	enum disk_what what;
	int file; /* 0, 1, ...: a new number for each file made */
	int64_t offset;
	size_t n;
	unsigned char *data;
	char *name;
};

struct disk_trace {
	struct disk_event *event;
	size_t n, room;
	int files;
};

struct disk_trace *disk_trace_new(void);
void disk_trace_free(struct disk_trace *);

/* Copies name and data.  DISK_CREATE takes the next file number. */
void disk_trace_add(struct disk_trace *, enum disk_what, int file,
    const char *name, int64_t offset, const void *data, size_t n);

/* The file of that name, or -1. */
int disk_trace_find(const struct disk_trace *, const char *name);

struct disk_unit {
	size_t event;
	int64_t offset; /* of a write: these bytes of the file */
	size_t n;
};

struct disk;

struct disk *disk_new(const struct disk_trace *);
void disk_free(struct disk *);

/* Takes the next event; false if there is none. */
bool disk_advance(struct disk *);

/* Changes with every sync: what must be there. */
uint64_t disk_epoch(const struct disk *);

/* What may be there or not, in the order in which it was done. */
const struct disk_unit *disk_units(struct disk *, size_t *n);

/*
 * Writes the files of dir, which must be empty.  keep has a byte for each
 * unit, or is NULL: all of them, as after a kill.  grow: a write that did not
 * survive has still made its file longer, by zeros.
 */
bool
disk_make(struct disk *, const unsigned char *keep, bool grow, const char *dir);

/* Removes the files of a directory, and makes it if it is not there. */
bool disk_empty(const char *dir);

#endif
