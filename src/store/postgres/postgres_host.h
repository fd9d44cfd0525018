/*
 * This host, as the stores of several hosts tell one from another.
 *
 * The processes of one host that use the same database see each other by the
 * kernel's locks, in files of a private folder (liveness.h, attempt_lock.h).
 * So a host is its machine and that folder: two containers of one machine that
 * share no folder are two hosts.
 *
 * Machine and folder have the same names in copies of a disk, and small numbers
 * of lock files are the same in many new file systems, as those of containers
 * in memory.  So a boot is that of the kernel and the mount of the file system:
 * two containers of one kernel that have one name are of two boots.
 */
#ifndef POSTGRES_HOST_H
#define POSTGRES_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "rc.h"

/* 32 hexadecimal digits of machine-id(5), "-", and 16 of the lock file. */
#define POSTGRES_HOST_LEN 49

/* The kernel's id of the boot, "-", and 16 digits of the device. */
#define POSTGRES_BOOT_LEN (CLOCK_BOOT_ID_LEN + 17)

struct postgres_host {
	/* what the names of the local files begin with; the caller frees it by
	 * postgres_host_free() */
	char *local;
	char name[POSTGRES_HOST_LEN + 1]; /* after postgres_host_name() */
	char boot[POSTGRES_BOOT_LEN + 1];
	int64_t number; /* made of the name: key_row.lock_file; > 0 */
};

/*
 * Finds the folder, and makes it if it is missing: what systemd names in
 * STATE_DIRECTORY, else /var/lib/oncewrap for root, else oncewrap-UID in
 * XDG_RUNTIME_DIR or /tmp.  It must belong to this user, and be private.  The
 * names in it are made of that of the database.  RC_OK; or err (of errsize
 * bytes) gets a sentence.
 */
enum rc postgres_host_open(struct postgres_host *host, const char *database,
    char *err, size_t errsize);

/* After the lock file was made; inode is its number, device that of its file
 * system.  Sets name, boot and number.  RC_OK, RC_NOMEM. */
enum rc
postgres_host_name(struct postgres_host *host, int64_t inode, uint64_t device);

void postgres_host_free(struct postgres_host *host);

#endif
