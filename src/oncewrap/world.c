/*
 * The user is that of this process.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "progcheck.h"
#include "store_files.h"
#include "user.h"

#include "access.h"
#include "world.h"

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
check_folder_of(const char *file, char *why, size_t size)
{
	char path[4097];

	world_folder_of(file, path, sizeof(path));
	return access_folder(path, why, size);
}

/* Whether it is no link, and no other name leads to it. */
static bool
check_regular(const char *file, const struct stat *st, char *why, size_t size)
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
	char path[4097], owner[USER_NAME], self[USER_NAME];

	if (!check_folder_of(file, why, size))
		return false;
	if (lstat(file, &st) == -1)
		return errno == ENOENT ||
		    progcheck_fail(why, size, "%s: %s", file, strerror(errno));
	if (!check_regular(file, &st, why, size))
		return false;
	world_folder_of(file, path, sizeof(path));
	user_name(st.st_uid, owner);
	user_name(geteuid(), self);
	if (st.st_uid != 0 && st.st_uid != geteuid() &&
	    (stat(path, &home) == -1 || st.st_uid != home.st_uid))
		return progcheck_fail(why, size,
		    "%s: belongs to %s, and not to %s%s or the owner of its "
		    "folder: chown it if it is yours",
		    file, owner, self, geteuid() == 0 ? "" : ", root");
	return store_files_check(file, STORE_FILES_KEEP, &bar) ||
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
	if (!check_folder_of(path, why, size))
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
	char owner[USER_NAME], self[USER_NAME];

	if (stat(path, &st) == -1 && (errno == ENOENT || errno == ENOTDIR))
		return progcheck_fail(why, size,
		    "%s: there is no such socket: start the application, or "
		    "name the socket that it listens on",
		    path);
	if (takes_connections(path))
		return true;
	if (errno == ECONNREFUSED && stat(path, &st) == 0 &&
	    !S_ISSOCK(st.st_mode))
		return progcheck_fail(why, size, "%s: is no socket", path);
	if (errno == ECONNREFUSED)
		return progcheck_fail(why, size,
		    "%s: no process listens on this socket: start the "
		    "application",
		    path);
	if (errno != EACCES)
		return progcheck_fail(
		    why, size, "%s: %s", path, strerror(errno));
	user_name(geteuid(), self);
	if (stat(path, &st) == -1)
		return progcheck_fail(why, size,
		    "%s: %s may not enter its folder: have the application "
		    "make its socket in a folder that %s may enter",
		    path, self, self);
	user_name(st.st_uid, owner);
	return progcheck_fail(why, size,
	    "%s: %s may not connect to this socket, which belongs to %s, mode "
	    "%04o: have the application make it for %s (php-fpm: listen.owner)",
	    path, self, owner, st.st_mode & 07777, self);
}

bool
world_private(const char *file, char *why, size_t size)
{
	char path[4097];
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
	char owner[USER_NAME];
	struct stat st;

	if (strcmp(log, "stderr") == 0)
		return true;
	if (strcmp(log, "syslog") == 0)
		return stat("/dev/log", &st) == 0 ||
		    progcheck_fail(why, size,
			"/dev/log: there is no such socket: no syslog runs");
	if (lstat(log, &st) == -1)
		return check_folder_of(log, why, size);
	if (!check_regular(log, &st, why, size))
		return false;
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		user_name(st.st_uid, owner);
		return progcheck_fail(why, size,
		    "%s: belongs to %s: run oncewrap and its -t as that user, "
		    "or name another file",
		    log, owner);
	}
	return access_file(log, W_OK, why, size);
}
