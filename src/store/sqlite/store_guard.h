/*
 * Whether a store is still what was opened.
 *
 * Its files can be removed or replaced by name while they are open (mv, rm, a
 * restore); what is then read and written is a file that no other process
 * sees.  And its content can go back to what it was earlier, in place (cp,
 * .restore).  Either way keys would be forgotten, so nothing is read and
 * nothing begun any more.
 */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include <sys/stat.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "scope.h"

enum { GUARD_DATABASE, GUARD_WAL, GUARD_SHM, GUARD_LOCK, GUARD_FILES };

struct store_guard {
	char *folder;
	struct {
		char *name;
		dev_t dev;
		ino_t ino;
		atomic_bool known; /* else there is nothing to compare with */
	} file[GUARD_FILES];
	dev_t dev; /* the folder's */
	ino_t ino;
	/* The folder's time of change (ns) at which all was in place, and after
	 * which no name in it has changed; 0: none yet. */
	_Atomic int64_t quiet;
	atomic_int bad; /* the file that is not in place, or -1 */
	atomic_bool went_back;

	/* of the thread that writes: what it has seen in the store */
	bool seen;
	unsigned char secret[SCOPE_SECRET_LEN];
	int64_t last; /* store time */
};

/* Of a database that is open, and of what is beside it by now.  On failure,
 * too, it can be freed; so can one that is all zeros. */
enum rc store_guard_init(struct store_guard *, const char *file);
void store_guard_free(struct store_guard *);

/* The lock file is there now, too. */
void store_guard_add_lock(struct store_guard *);

/*
 * RC_OK; RC_REPLACED: a file is not in place; RC_WENT_BACK.  The first time it
 * is logged.  One stat(2), as long as no name in the folder changes.  May be
 * called by any thread.
 */
enum rc store_guard_check(struct store_guard *);

/*
 * Within a transaction of the thread that writes: RC_WENT_BACK, for good, if
 * the store lacks what was seen in it before.
 */
enum rc store_guard_past(struct store_guard *, struct db *);

/* A few words for RC_REPLACED and RC_WENT_BACK. */
void store_guard_why(const struct store_guard *, char *why, size_t size);

#endif
