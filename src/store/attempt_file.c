/*
 * See attempt_file.h.
 *
 * The folder is opened for each call, and its owner and mode are checked: it is
 * beside the database, in a folder that handlers may be able to write.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "uuid.h"
#include "attempt_file.h"

/* --- names ---------------------------------------------------------------- */

/* A name has 62 bits: those of the boot, then random ones. */
#define NAME_BITS 40
#define BOOT_BITS 22

void
attempt_file_text(int64_t name, const char *kind, char text[ATTEMPT_FILE_LEN])
{
	snprintf(
	    text, ATTEMPT_FILE_LEN, "%016" PRIx64 "%s", (uint64_t)name, kind);
}

/* The bits of this boot, > 0; 0: the boot has no name. */
static int64_t
boot_bits(void)
{
	char id[CLOCK_BOOT_ID_LEN + 1];
	uint64_t hash = UINT64_C(14695981039346656037);
	const char *p;

	if (!clock_boot_id(id))
		return 0;
	for (p = id; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
	hash = (hash >> 20) & ((UINT64_C(1) << BOOT_BITS) - 1);
	return hash == 0 ? 1 : (int64_t)hash;
}

bool
attempt_file_is_past(int64_t name)
{
	int64_t made = name >> NAME_BITS, now = boot_bits();

	return made > 0 && now > 0 && made != now;
}

bool
attempt_file_is_of_this_boot(int64_t name)
{
	const int64_t made = name >> NAME_BITS;

	return made > 0 && made == boot_bits();
}

int64_t
attempt_file_new_name(void)
{
	const uint64_t bits = (uint64_t)uuid_bits() << 32 | uuid_bits();

	return boot_bits() << NAME_BITS | (int64_t)(bits >> (64 - NAME_BITS)) |
	    1;
}

int64_t
attempt_file_number(const char *text, const char *kind)
{
	uint64_t name = strtoull(text, NULL, 16);
	char again[ATTEMPT_FILE_LEN];

	if (name > INT64_MAX)
		return 0;
	attempt_file_text((int64_t)name, kind, again);
	return strcmp(again, text) == 0 ? (int64_t)name : 0;
}

/* --- files ---------------------------------------------------------------- */

/* Whether the folder can be trusted: its owner is this user or the database's
 * owner, and no other user may use it. */
static bool
folder_is_ours(int folder, const struct stat *database)
{
	struct stat st;

	if (fstat(folder, &st) == -1)
		return false;
	if ((st.st_mode & 077) == 0 &&
	    (st.st_uid == geteuid() || st.st_uid == database->st_uid))
		return true;
	errno = EPERM;
	return false;
}

/* The file that the store's files belong with: the database, or the lock file
 * of a store that has no file of its own. */
static int
stat_store(const char *database, struct stat *st)
{
	char *lock;
	int rc;

	if (stat(database, st) == 0)
		return 0;
	if (asprintf(&lock, "%s-lock", database) == -1)
		return -1;
	rc = stat(lock, st);
	free(lock);
	return rc;
}

int
attempt_file_folder(const char *database, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	char *name;
	int fd, error;

	if (stat_store(database, &st) == -1 ||
	    asprintf(&name, "%s-attempts", database) == -1)
		return -1;
	fd = open(name, flags);
	if (fd == -1 && errno == ENOENT && make &&
	    (mkdir(name, 0700) == 0 || errno == EEXIST) &&
	    (fd = open(name, flags)) != -1 && geteuid() == 0 &&
	    fchown(fd, st.st_uid, st.st_gid) == -1) {
		close(fd);
		fd = -1;
	}
	if (fd != -1 && !folder_is_ours(fd, &st)) {
		close(fd);
		errno = EPERM;
		fd = -1;
	}
	error = errno;
	free(name);
	errno = error;
	return fd;
}

int
attempt_file_open(const char *database, int64_t name, const char *kind)
{
	char text[ATTEMPT_FILE_LEN];
	int folder, fd;

	if (name <= 0 || (folder = attempt_file_folder(database, false)) == -1)
		return -1;
	attempt_file_text(name, kind, text);
	fd = openat(folder, text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	close(folder);
	return fd;
}

void
attempt_file_remove(const char *database, int64_t name, const char *kind)
{
	char text[ATTEMPT_FILE_LEN];
	int folder;

	if (name <= 0 || (folder = attempt_file_folder(database, false)) == -1)
		return;
	attempt_file_text(name, kind, text);
	(void)unlinkat(folder, text, 0);
	close(folder);
}
