/*
 * This host, as the stores of several hosts tell one from another.
 *
 * The processes of one host that use the same database see each other by the
 * kernel's locks, in files of a private folder (liveness.h, attempt_lock.h).
 * So a host is that folder, by random bits in its lock file (postgres_mark.h):
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
#include "postgres_mark.h"
#include "rc.h"
#include "scope.h"

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

/* What tells one store from another, whichever role opens it: the secret in it,
 * and the name that the server gives to its database.  So a store that was
 * restored under another name beside the first one is another store. */
struct postgres_host_store {
	const unsigned char *secret; /* SCOPE_SECRET_LEN bytes */
	const char *catalog;
};

/* Whether the folder can be used, if it is there. */
enum rc postgres_host_check(char *err, size_t errsize);

/* The machine's id, 32 digits; zeros if it has none. */
void postgres_host_machine(char id[33]);

/* After that: remembers in the folder that this process holds its lock there.
 * RC_IO, RC_NOMEM, RC_LOST. */
enum rc
postgres_host_holds(const struct postgres_host *host, const struct liveness *l);

/* Whether that process did, in this boot or in another one. */
bool postgres_host_held(
    const struct postgres_host *host, const struct liveness *l, int64_t owner);

void postgres_host_free(struct postgres_host *host);

#endif
