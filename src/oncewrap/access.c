/*
 * The cure is never to give a folder away: it may be /usr/lib, or the home of
 * root.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progcheck.h"
#include "user.h"

#include "access.h"

/* Of a folder that this user may not write or enter, as what says. */
static bool
refuse_folder(const char *path, const struct stat *st, const char *what,
    char *why, size_t size)
{
	const unsigned mode = st->st_mode & 07777;
	char owner[USER_NAME], self[USER_NAME];

	user_name(st->st_uid, owner);
	user_name(geteuid(), self);
	if (st->st_uid == geteuid() && (mode & 0300) != 0300)
		return progcheck_fail(why, size,
		    "%s: %s may not %s this folder, which is its own, mode "
		    "%04o: chmod u+wx it",
		    path, self, what, mode);
	return progcheck_fail(why, size,
	    "%s: %s may not %s this folder, which belongs to %s, mode %04o: "
	    "name a folder that belongs to %s, for example one below /var/lib",
	    path, self, what, owner, mode, self);
}

/* Of a path that cannot be looked at: finds the folder that this user may not
 * enter. */
static bool
refuse_above(const char *path, char *why, size_t size)
{
	const int error = errno;
	char above[PATH_MAX];
	struct stat st;

	for (const char *p = path; (p = strchr(p + 1, '/')) != NULL;) {
		(void)snprintf(
		    above, sizeof(above), "%.*s", (int)(p - path), path);
		if (stat(above, &st) == 0 && S_ISDIR(st.st_mode) &&
		    !progcheck_may(above, NULL, X_OK))
			return refuse_folder(above, &st, "enter", why, size);
	}
	return progcheck_fail(why, size, "%s: %s", path, strerror(error));
}

bool
access_folder(const char *path, char *why, size_t size)
{
	struct stat st;
	char self[USER_NAME];

	if (stat(path, &st) == -1 && errno == ENOENT) {
		user_name(geteuid(), self);
		return progcheck_fail(why, size,
		    "%s: there is no such folder: create it for %s", path,
		    self);
	}
	if (stat(path, &st) == -1)
		return refuse_above(path, why, size);
	if (!S_ISDIR(st.st_mode))
		return progcheck_fail(why, size, "%s: is not a folder", path);
	if (progcheck_may(path, NULL, W_OK | X_OK))
		return true;
	if (errno == EROFS)
		return progcheck_fail(why, size,
		    "%s: is on a file system that is mounted read-only: "
		    "remount it, or name a folder elsewhere",
		    path);
	return refuse_folder(path, &st, "write", why, size);
}

bool
access_file(const char *path, int mode, char *why, size_t size)
{
	const char *what = (mode & R_OK) != 0 ? "read and write" : "write";
	const unsigned bits = (unsigned)mode << 6;
	char owner[USER_NAME], self[USER_NAME];
	struct stat st;

	if (progcheck_may(path, NULL, mode))
		return true;
	if (errno != EACCES || stat(path, &st) == -1)
		return refuse_above(path, why, size);
	user_name(st.st_uid, owner);
	user_name(geteuid(), self);
	if (st.st_uid == geteuid() && (st.st_mode & bits) != bits)
		return progcheck_fail(why, size,
		    "%s: %s may not %s this file, which is its own, mode %04o: "
		    "chmod u+rw it",
		    path, self, what, st.st_mode & 07777);
	return progcheck_fail(why, size,
	    "%s: %s may not %s this file, which belongs to %s, mode %04o: name "
	    "another file, or chown it to %s if it is oncewrap's",
	    path, self, what, owner, st.st_mode & 07777, self);
}
