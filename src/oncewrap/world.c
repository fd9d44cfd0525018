/*
 * The user is that of this process.  The cure is never to give a folder away:
 * it may be /usr/lib, or the home of root.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "progcheck.h"
#include "store_files.h"
#include "user.h"
#include "world.h"

/* The names of this process's user and of an owner, until the next call: only
 * the main thread asks. */
static const char *
world_self(void)
{
	static char name[USER_NAME];

	user_name(geteuid(), name);
	return name;
}

static const char *
world_owner(const struct stat *st)
{
	static char name[USER_NAME];

	user_name(st->st_uid, name);
	return name;
}

/* Of a folder that this user may not write or enter, as what says. */
static bool
world_refuse_folder(const char *path, const struct stat *st, const char *what,
    char *why, size_t size)
{
	const unsigned mode = st->st_mode & 07777;

	if (st->st_uid == geteuid() && (mode & 0300) != 0300)
		return progcheck_fail(why, size,
		    "%s: %s may not %s this folder, which is its own, mode "
		    "%04o: chmod u+wx it",
		    path, world_self(), what, mode);
	return progcheck_fail(why, size,
	    "%s: %s may not %s this folder, which belongs to %s, mode %04o: "
	    "name a folder that belongs to %s, for example one below /var/lib",
	    path, world_self(), what, world_owner(st), mode, world_self());
}

/* Of a path that cannot be looked at: finds the folder that this user may not
 * enter. */
static bool
world_refuse_above(const char *path, char *why, size_t size)
{
	const int error = errno;
	char above[PATH_MAX];
	struct stat st;

	for (const char *p = path; (p = strchr(p + 1, '/')) != NULL;) {
		(void)snprintf(
		    above, sizeof(above), "%.*s", (int)(p - path), path);
		if (stat(above, &st) == 0 && S_ISDIR(st.st_mode) &&
		    !progcheck_may(above, NULL, X_OK))
			return world_refuse_folder(
			    above, &st, "enter", why, size);
	}
	return progcheck_fail(why, size, "%s: %s", path, strerror(error));
}

/* mode: what is to be done in it, a sum of R_OK, W_OK, X_OK, and its verb. */
static bool
world_check_folder(
    const char *path, int mode, const char *verb, char *why, size_t size)
{
	struct stat st;

	if (stat(path, &st) == -1 && errno == ENOENT)
		return progcheck_fail(why, size,
		    "%s: there is no such folder: create it for %s", path,
		    world_self());
	if (stat(path, &st) == -1)
		return world_refuse_above(path, why, size);
	if (!S_ISDIR(st.st_mode))
		return progcheck_fail(why, size, "%s: is not a folder", path);
	if (progcheck_may(path, NULL, mode))
		return true;
	if (errno == EROFS)
		return progcheck_fail(why, size,
		    "%s: is on a file system that is mounted read-only: "
		    "remount it, or name a folder elsewhere",
		    path);
	return world_refuse_folder(path, &st, verb, why, size);
}

bool
world_folder(const char *path, char *why, size_t size)
{
	return world_check_folder(path, W_OK | X_OK, "write", why, size);
}

bool
world_pages(const char *path, char *why, size_t size)
{
	return world_check_folder(path, R_OK | X_OK, "read", why, size);
}

/* Of a file that is there, to be read and written, or written only. */
static bool
world_file(const char *path, int mode, char *why, size_t size)
{
	const char *what = (mode & R_OK) != 0 ? "read and write" : "write";
	const unsigned bits = (unsigned)mode << 6;
	struct stat st;

	if (progcheck_may(path, NULL, mode))
		return true;
	if (errno != EACCES || stat(path, &st) == -1)
		return world_refuse_above(path, why, size);
	if (st.st_uid == geteuid() && (st.st_mode & bits) != bits)
		return progcheck_fail(why, size,
		    "%s: %s may not %s this file, which is its own, mode %04o: "
		    "chmod u+rw it",
		    path, world_self(), what, st.st_mode & 07777);
	return progcheck_fail(why, size,
	    "%s: %s may not %s this file, which belongs to %s, mode %04o: name "
	    "another file, or chown it to %s if it is oncewrap's",
	    path, world_self(), what, world_owner(&st), st.st_mode & 07777,
	    world_self());
}

/* Copies the folder of a file; a name without a slash is in ".". */
static void
world_folder_of(const char *file, char *out, size_t size)
{
	const char *slash = strrchr(file, '/');

	if (slash == NULL)
		(void)snprintf(out, size, ".");
	else
		(void)snprintf(out, size, "%.*s",
		    slash == file ? 1 : (int)(slash - file), file);
}

/* The folder of a file that will be made. */
static bool
world_check_folder_of(const char *file, char *why, size_t size)
{
	char path[PATH_MAX + 1];

	world_folder_of(file, path, sizeof(path));
	return world_folder(path, why, size);
}

/* Whether it is no link, and no other name leads to it. */
static bool
world_check_regular(
    const char *file, const struct stat *st, char *why, size_t size)
{
	if (S_ISDIR(st->st_mode))
		return progcheck_fail(
		    why, size, "%s: is a folder: name a file in it", file);
	return (S_ISREG(st->st_mode) && st->st_nlink == 1) ||
	    progcheck_fail(why, size,
		"%s: is not a regular file with one name: name one that is no "
		"link",
		file);
}

bool
world_database(const char *file, char *why, size_t size)
{
	struct store_files_bar bar;
	struct stat st, home;
	char path[PATH_MAX + 1];

	if (!world_check_folder_of(file, why, size))
		return false;
	if (lstat(file, &st) == -1)
		return errno == ENOENT ||
		    progcheck_fail(why, size, "%s: %s", file, strerror(errno));
	if (!world_check_regular(file, &st, why, size))
		return false;
	world_folder_of(file, path, sizeof(path));
	if (st.st_uid != 0 && st.st_uid != geteuid() &&
	    (stat(path, &home) == -1 || st.st_uid != home.st_uid))
		return progcheck_fail(why, size,
		    "%s: belongs to %s, and not to %s%s or the owner of its "
		    "folder: chown it if it is yours",
		    file, world_owner(&st), world_self(),
		    geteuid() == 0 ? "" : ", root");
	return store_files_check(file, STORE_FILES_DAEMON, &bar) ||
	    progcheck_fail(why, size, "%s: %s", bar.file, bar.cure);
}

bool
world_socket(const char *address, char *why, size_t size)
{
	const char *path = address;
	struct stat st;

	if (strncmp(address, "unix:", 5) == 0)
		path += 5;
	if (*path != '/')
		return true;
	if (!world_check_folder_of(path, why, size))
		return false;
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return progcheck_fail(why, size,
		    "%s: is there and is no socket: remove it", path);
	return true;
}

/* Connects, without a wait.  A full queue is a matter of time. */
static bool
takes_connections(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, error = 0;

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return false;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1)
		error = errno;
	close(fd);
	errno = error;
	return error == 0 || error == EAGAIN;
}

bool
world_application(const char *path, char *why, size_t size)
{
	struct stat st;

	if (takes_connections(path))
		return true;
	if (errno != EACCES)
		return progcheck_fail(why, size,
		    "%s: %s: start the application, or name the socket that it "
		    "listens on",
		    path, strerror(errno));
	if (stat(path, &st) == -1)
		return world_refuse_above(path, why, size);
	return progcheck_fail(why, size,
	    "%s: %s may not connect to this socket, which belongs to %s, mode "
	    "%04o: have the application make it for %s (php-fpm: listen.owner)",
	    path, world_self(), world_owner(&st), st.st_mode & 07777,
	    world_self());
}

bool
world_private(const char *file, char *why, size_t size)
{
	char path[PATH_MAX + 1];
	struct stat st;

	world_folder_of(file, path, sizeof(path));
	if (stat(path, &st) == -1 || (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return true;
	return progcheck_fail(why, size,
	    "%s: %s may write this folder, and put files of their own there: "
	    "name another one",
	    path,
	    (st.st_mode & S_IWOTH) != 0 ? "all users" : "users of its group");
}

bool
world_log(const char *log, char *why, size_t size)
{
	char path[PATH_MAX + 1];
	struct stat st, home;

	if (strcmp(log, "stderr") == 0)
		return true;
	if (strcmp(log, "syslog") == 0)
		return stat("/dev/log", &st) == 0 ||
		    progcheck_fail(why, size,
			"/dev/log: there is no such socket: no syslog runs");
	if (lstat(log, &st) == -1)
		return world_check_folder_of(log, why, size);
	if (!world_check_regular(log, &st, why, size))
		return false;
	world_folder_of(log, path, sizeof(path));
	if (stat(path, &home) == 0 && !log_may_be(&st, &home))
		return progcheck_fail(why, size,
		    "%s: belongs to %s: run oncewrap and its -t as that user, "
		    "or name another file",
		    log, world_owner(&st));
	return world_file(log, W_OK, why, size);
}

void
world_not_started(const char *error,
    bool (*check)(const char *, char *, size_t), const char *name)
{
	char cure[2048];

	if (name == NULL || check(name, cure, sizeof(cure)))
		log_event(
		    LOG_ERROR, "not-started", NULL, LOG_S("error", error));
	else
		log_event(LOG_ERROR, "not-started", NULL, LOG_S("error", error),
		    LOG_S("cure", cure));
}
