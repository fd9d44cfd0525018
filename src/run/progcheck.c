/*
 * The order is the kernel's: path, kind, permission, and then the first line
 * (execve(2), "Interpreter scripts").
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progcheck.h"

/* The kernel reads no more of the first line: BINPRM_BUF_SIZE. */
#define FIRST_LINE 256

bool
progcheck_fail(char *why, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(why, size, format, ap);
	va_end(ap);
	return false;
}

static bool
is_in_group(const struct user *user, gid_t gid)
{
	if (user->gid == gid)
		return true;
	for (size_t i = 0; i < user->ngroups; i++)
		if (user->groups[i] == gid)
			return true;
	return false;
}

bool
progcheck_may(const char *path, const struct user *as, int mode)
{
	struct stat st;
	unsigned bits;

	if (as == NULL || !as->change)
		return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
	if (stat(path, &st) == -1)
		return false;
	if (as->uid == 0)
		return (mode & X_OK) == 0 || S_ISDIR(st.st_mode) ||
		    (st.st_mode & 0111) != 0;
	if (st.st_uid == as->uid)
		bits = st.st_mode >> 6;
	else if (is_in_group(as, st.st_gid))
		bits = st.st_mode >> 3;
	else
		bits = st.st_mode;
	return (bits & 7 & (unsigned)mode) == (unsigned)mode;
}

/* Whether another user may enter the folders above the path.  This process's
 * own user has been told by the kernel. */
static bool
check_above(const char *path, const struct user *as, char *why, size_t size)
{
	char folder[PATH_MAX];
	const char *end = path;

	if (as == NULL || !as->change)
		return true;
	while ((end = strchr(end + 1, '/')) != NULL) {
		snprintf(
		    folder, sizeof(folder), "%.*s", (int)(end - path), path);
		if (!progcheck_may(folder, as, X_OK))
			return progcheck_fail(why, size,
			    "%s: user %ld may not enter the folder %s", path,
			    (long)as->uid, folder);
	}
	return true;
}

/* Looks at the file itself. */
static bool
check_file(const char *path, const struct user *as, char *why, size_t size)
{
	struct stat st;

	if (stat(path, &st) == -1 && (errno == ENOENT || errno == ENOTDIR))
		return progcheck_fail(
		    why, size, "%s: there is no such program", path);
	if (stat(path, &st) == -1)
		return progcheck_fail(
		    why, size, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return progcheck_fail(
		    why, size, "%s: is a folder, not a program", path);
	if (!S_ISREG(st.st_mode))
		return progcheck_fail(
		    why, size, "%s: is no regular file", path);
	if (!check_above(path, as, why, size))
		return false;
	if ((st.st_mode & 0111) == 0)
		return progcheck_fail(
		    why, size, "%s: is not executable: chmod +x it", path);
	if (!progcheck_may(path, as, X_OK))
		return progcheck_fail(why, size,
		    "%s: user %ld may not execute it: it belongs to user %ld, "
		    "mode %04o",
		    path, (long)(as != NULL ? as->uid : geteuid()),
		    (long)st.st_uid, st.st_mode & 07777);
	return true;
}

/* Whether some folder of PATH has that program. */
static bool
is_in_path(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char file[4096];
	struct stat st;

	if (path == NULL || strchr(name, '/') != NULL)
		return true; /* env(1) decides */
	for (; *path != '\0'; path = *end != '\0' ? end + 1 : end) {
		end = path + strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)(end - path), path,
		    name);
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* line: what follows "#!", without the line's end. */
static bool
check_interpreter(
    const char *path, char *line, const struct user *as, char *why, size_t size)
{
	char reason[1024], *argument, *slash;

	line += strspn(line, " \t");
	argument = line + strcspn(line, " \t");
	if (*argument != '\0')
		*argument++ = '\0';
	if (*line == '\0')
		return progcheck_fail(
		    why, size, "%s: names no interpreter after #!", path);
	if (!check_file(line, as, reason, sizeof(reason)))
		return progcheck_fail(why, size,
		    "%s: its interpreter cannot be run: %s", path, reason);
	argument += strspn(argument, " \t");
	slash = strrchr(line, '/');
	if (slash == NULL || strcmp(slash, "/env") != 0)
		return true;
	argument[strcspn(argument, " \t")] = '\0';
	if (*argument != '\0' && *argument != '-' &&
	    strchr(argument, '=') == NULL && !is_in_path(argument))
		return progcheck_fail(why, size,
		    "%s: its interpreter \"%.100s\" is in no folder of PATH",
		    path, argument);
	return true;
}

static bool
check_first_line(
    const char *path, const struct user *as, char *why, size_t size)
{
	char line[FIRST_LINE + 1];
	ssize_t n;
	size_t end;
	int fd;

	/* A program that is not readable may be executable. */
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) == -1)
		return true;
	n = read(fd, line, FIRST_LINE);
	close(fd);
	if (n < 0)
		return true;
	line[n] = '\0';
	if (n >= 4 && memcmp(line, "\177ELF", 4) == 0)
		return true;
	if (n >= 5 && memcmp(line, "\xef\xbb\xbf#!", 5) == 0)
		return progcheck_fail(why, size,
		    "%s: begins with a byte order mark, which hides its #!: "
		    "save it without",
		    path);
	if (n < 2 || memcmp(line, "#!", 2) != 0)
		return progcheck_fail(why, size,
		    "%s: is neither a program nor begins with #!", path);
	end = strcspn(line, "\n");
	if (line[end] == '\n' && line[end - 1] == '\r')
		return progcheck_fail(why, size,
		    "%s: its first line ends in CR LF, so the kernel looks for "
		    "an interpreter with CR in its name: write LF alone",
		    path);
	line[end] = '\0';
	return check_interpreter(path, line + 2, as, why, size);
}

bool
progcheck(const char *path, const struct user *as, char *why, size_t size)
{
	return check_file(path, as, why, size) &&
	    (progcheck_may(path, as, R_OK)
		    ? check_first_line(path, as, why, size)
		    : true);
}

bool
progcheck_folder(
    const char *path, const struct user *as, char *why, size_t size)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return progcheck_fail(
		    why, size, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return progcheck_fail(why, size, "%s: is not a folder", path);
	if (!check_above(path, as, why, size))
		return false;
	return progcheck_may(path, as, X_OK) ||
	    progcheck_fail(why, size,
		"%s: the program's user may not enter it, mode %04o", path,
		st.st_mode & 07777);
}
