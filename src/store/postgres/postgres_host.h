/*
 * This host, as the stores of several hosts tell one from another.
 *
 * The processes of one host that use the same database see each other by the
 * kernel's locks, in files of a private folder (liveness.h, attempt_lock.h).
 * So a host is that folder, by random bits in its lock file (the mark):
 * two containers of one machine that share no folder are two hosts.
 *
 * A lock that is free proves that a process is gone only if the process held it
 * in this very folder.  So it did if it had this host's name in this boot, or
 * if the lock file names the process.  A boot is that of the kernel and the
 * mount of the file system, so a copy of the disk that runs elsewhere is of
 * another boot.
 */
#ifndef POSTGRES_HOST_H
#define POSTGRES_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "liveness.h"
#include "rc.h"
#include "scope.h"

/* --- the mark of a host --------------------------------------------------- */

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
#define POSTGRES_MARK_LEN 32

/*
 * Notes that this process holds its lock in that file, which has a mark.
 * Synced.  RC_IO: errno says why; RC_LOST: there is no mark.  Of some 400
 * processes the last ones are known.
 */
enum rc postgres_host_holds(const struct liveness *l);

/* Whether that process has held its lock in that file, on this device: then it
 * is gone if the lock is free, in whatever boot that was. */
bool postgres_host_held(const struct liveness *l, int64_t owner);

/* --- the host ------------------------------------------------------------- */

/* 32 hexadecimal digits of machine-id(5), "-", and the mark. */
#define POSTGRES_HOST_LEN (33 + POSTGRES_MARK_LEN)

/* The kernel's id of the boot, "-", and 16 digits of the device. */
#define POSTGRES_BOOT_LEN (CLOCK_BOOT_ID_LEN + 17)

struct postgres_host {
	/* the caller frees these by postgres_host_free() */
	char *folder;
	char *local; /* what the names of the local files begin with */
	char name[POSTGRES_HOST_LEN + 1]; /* once the lock file is open */
	char boot[POSTGRES_BOOT_LEN + 1];
	int64_t number; /* made of the name: once_key.lock_file; > 0 */
};

/* Whether the folder can be used, if it is there. */
enum rc postgres_host_check(char *err, size_t errsize);

/*
 * Finds the folder: what systemd names in STATE_DIRECTORY, else
 * /var/lib/oncewrap.  It must belong to this user, and be private.  make: makes
 * it if it is missing; else RC_NOTFOUND.  RC_OK; or err (of errsize bytes) gets
 * a sentence.
 */
enum rc postgres_host_open(
    struct postgres_host *host, bool make, char *err, size_t errsize);

/*
 * Names the store's files there.  What tells one store from another, whichever
 * role opens it, is the secret in it (SCOPE_SECRET_LEN bytes), and the name
 * that the server gives to its database.  So a store that was restored under
 * another name beside the first one is another store.  RC_NOMEM.
 */
enum rc postgres_host_store(struct postgres_host *host,
    const unsigned char *secret, const char *catalog);

/* After the lock file was opened: sets name, boot and number.  make: makes the
 * file's mark if it is needed; else RC_NOTFOUND.  RC_OK; or err gets a
 * sentence. */
enum rc postgres_host_name(struct postgres_host *host, const struct liveness *l,
    bool make, char *err, size_t errsize);

/* The machine's id, 32 digits; zeros if it has none. */
void postgres_host_machine(char id[33]);

void postgres_host_free(struct postgres_host *host);

#endif
