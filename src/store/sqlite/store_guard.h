/*
 * Whether a store is still the one that was opened.
 *
 * Its files can be removed or replaced by name while they are open (mv, rm, a
 * restore).  Reads and writes then go to a file that no other process sees.
 * And its content can be overwritten in place by an earlier state (cp,
 * .restore).  Either way keys would be forgotten, so the store refuses all
 * reads and writes from then on.
 */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include <sys/stat.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "identity.h"
#include "scope.h"
#include "words.h"

/* The files of a store, and what their names end with. */
/* clang-format off */
#define GUARD_NAMES(X) \
	X(GUARD_DATABASE, "") \
	X(GUARD_WAL, "-wal") \
	X(GUARD_SHM, "-shm") \
	X(GUARD_LOCK, "-lock")
/* clang-format on */
enum { GUARD_NAMES(WORDS_ENUMERATOR) };
#define GUARD_FILES WORDS_COUNT(GUARD_NAMES)

struct store_guard {
	char *folder;
	struct {
		char *name;
		dev_t dev;
		ino_t ino;
		atomic_bool known; /* if not, there is nothing to compare */
	} file[GUARD_FILES];
	dev_t dev; /* the folder's */
	ino_t ino;
	/* The folder's ctime (ns) at which all files were in place, if no name
	 * in the folder has changed since; 0: none yet. */
	_Atomic int64_t quiet;
	atomic_int bad; /* the file that is not in place, or -1 */
	atomic_bool went_back;

	/* of the file itself, past the log: see store_guard_file.c */
	int64_t page, page_size;   /* the page of once_meta */
	_Atomic uint64_t sealed;   /* the highest seal; 0: none yet */
	_Atomic int64_t file_size; /* it never shrinks */
	_Atomic uint64_t due;      /* the seal that was committed last, */
	_Atomic uint64_t due_log;  /* and db_log_salt() after it; 0: none */

	/* used by the writing thread only, but for the secret, which is set
	 * before others start: the past that it has read */
	uint64_t seal;  /* as the log has it */
	uint64_t least; /* the highest one that was read or committed */
	uint64_t base;  /* the same of the seal below it */
	uint64_t log;   /* db_log_salt() of the last commit */
	uint64_t new_log;
	uint32_t moved; /* db_log_moved() of the last commit */
	uint32_t new_moved;
	uint64_t below; /* the highest seal that the file had before it */
	unsigned char secret[SCOPE_SECRET_LEN];
	int64_t last;   /* store time */
	int64_t id;     /* the highest number that a key has had */
	int64_t new_id; /* the same in the open transaction */
};

/* For an open database and the files that are beside it now.
 * store_guard_free() is legal after a failure, and for a struct of zeros. */
enum rc store_guard_init(struct store_guard *g, const char *file);
void store_guard_free(struct store_guard *g);

/* The lock file exists now, too. */
void store_guard_add_lock(struct store_guard *g);

/*
 * RC_OK; RC_REPLACED: a file is not in place; RC_WENT_BACK.  The first failure
 * is logged.  It costs one stat(2) as long as no name in the folder changes.
 * Any thread may call it.
 */
enum rc store_guard_check(struct store_guard *g);

/*
 * Called by the writing thread at the beginning of its transaction.
 * RC_WENT_BACK, also from all later calls, if the store lacks what was read in
 * it before, or was committed by this process.
 */
enum rc store_guard_past(struct store_guard *g, struct db *db);

/*
 * RC_WENT_BACK, also from all later calls, if the file itself, past the log, is
 * not what it was: another file was copied over it, or it was truncated.  It is
 * called between a read and the use of what was read, by any thread.
 */
enum rc store_guard_file(struct store_guard *g, struct db *db);

/* Called after store_guard_past(), in a transaction after which the log is
 * moved into the file (moves), or that begins an attempt of a key that was
 * there: sets the next seal. */
enum rc store_guard_seal(struct store_guard *g, struct db *db, bool moves);

/*
 * Called before each COMMIT, and after store_guard_past().  In a new log sets
 * the next seal, and the one that the log stands on; and the next seal where a
 * part of the log was moved into the file since the last COMMIT.  *move becomes
 * true if the log is to be moved after this transaction, because the last move
 * had no seal of its own.
 */
enum rc store_guard_base(struct store_guard *g, struct db *db, bool *move);

/* Called before anything else is made of the content: reads the secret, and
 * finds where the seal is.  RC_WENT_BACK: the file is older than its log. */
enum rc store_guard_fits(struct store_guard *g, struct db *db);

/* Reads the column of once_meta: the seal, and the one that the log stands on;
 * 0: there is none. */
void store_guard_read_seal(
    struct store_guard *g, const unsigned char *bytes, size_t n);

/*
 * fd is a whole copy of the database.  Marks its seal as that of a copy: put
 * over the database it is noticed, whatever was written to that since.  A
 * process that is started with the copy goes on from the seal's number.
 */
enum rc store_guard_copied(const struct store_guard *g, int fd);

/* RC_WENT_BACK, also from all later calls, if a mapped file was truncated.
 * Called after a COMMIT; the other checks call it themselves. */
enum rc store_guard_mapped(struct store_guard *g);

/* The store is not what it was: logs why, once, and returns RC_WENT_BACK. */
enum rc store_guard_went_back(struct store_guard *g, const char *what);

/*
 * RC_CORRUPT: there are keys, and the seed is from another secret than that of
 * their numbers.  No request would find its key, and all would run again.
 */
enum rc store_guard_secret(struct db *db, const struct identity_seed *seed);

/* Called before the COMMIT, and after one that succeeded: the next call of
 * store_guard_past() misses the new keys of this transaction if they are not
 * there. */
enum rc store_guard_note(struct store_guard *g, struct db *db);
void store_guard_commit(struct store_guard *g, struct db *db);

/* Writes a few words for RC_REPLACED and RC_WENT_BACK into why. */
void store_guard_why(const struct store_guard *g, char *why, size_t size);

#endif
