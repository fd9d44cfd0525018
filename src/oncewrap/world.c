/*
 * Each check reports the first thing that is wrong with one option.  The user
 * is that of this process: a check as root finds what a daemon that runs as
 * root would meet.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf_text.h"
#include "conf_unused.h"
#include "log.h"
#include "progcheck.h"
#include "store_files.h"
#include "store_module.h"
#include "user.h"

#include "access.h"
#include "world.h"

#define WHY 2048

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
	if (S_ISDIR(st.st_mode))
		return progcheck_fail(
		    why, size, "%s: is a folder: name a file in it", file);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return progcheck_fail(
		    why, size, "%s: is not a regular file with one name", file);
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

/* The socket of an application that oncewrap does not start. */
static bool
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

/* Whether only this user and root may put files into the folder of that file;
 * as others could put theirs in its place. */
static bool
is_private(const char *path, char *why, size_t size)
{
	const char *end = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat st;

	(void)snprintf(folder, sizeof(folder), "%.*s",
	    end > path ? (int)(end - path) : 1, end != NULL ? path : ".");
	if (stat(folder, &st) == -1 || (st.st_mode & S_IWOTH) == 0)
		return true;
	return progcheck_fail(why, size,
	    "%s: all users may write this folder, and put files of their own "
	    "there: name another one",
	    folder);
}

bool
world_log(const char *log, char *why, size_t size)
{
	struct stat st;

	if (strcmp(log, "stderr") == 0)
		return true;
	if (strcmp(log, "syslog") == 0)
		return stat("/dev/log", &st) == 0 ||
		    progcheck_fail(why, size,
			"/dev/log: there is no such socket: no syslog runs");
	if (lstat(log, &st) == -1)
		return check_folder_of(log, why, size) &&
		    is_private(log, why, size);
	if (S_ISDIR(st.st_mode))
		return progcheck_fail(why, size, "%s: is a folder", log);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    (st.st_uid != geteuid() && st.st_uid != 0))
		return progcheck_fail(why, size,
		    "%s: is no regular file with one name, of this user or of "
		    "root",
		    log);
	return access_file(log, W_OK, why, size) && is_private(log, why, size);
}

/* --- warnings ----------------------------------------------------------- */

struct report {
	const struct conf *conf;
	unsigned n;
};

static void
warn(struct report *r, conf_line line, const char *option, const char *why)
{
	char text[WHY + 512], where[256];

	if (r->conf->file == NULL)
		(void)snprintf(where, sizeof(where), "oncewrap");
	else if (line == 0)
		(void)snprintf(where, sizeof(where), "%.200s", r->conf->file);
	else
		(void)snprintf(
		    where, sizeof(where), "%.200s:%u", r->conf->file, line);
	(void)snprintf(
	    text, sizeof(text), "%s: warning: %s: %s", where, option, why);
	log_text(LOG_WARN, text);
	r->n++;
}

/* No option is a pattern.  False: it was reported. */
static bool
check_star(
    struct report *r, conf_line line, const char *option, const char *path)
{
	char why[WHY];

	if (strchr(path, '*') == NULL)
		return true;
	(void)snprintf(why, sizeof(why),
	    "\"%.1000s\": a * stands for itself here, and not for other names",
	    path);
	warn(r, line, option, why);
	return false;
}

static void
check_path(struct report *r, const char *option, const char *path,
    bool (*check)(const char *, char *, size_t))
{
	const conf_line line = conf_line_of_server(r->conf, option);
	char why[WHY];

	if (path != NULL && check_star(r, line, option, path) &&
	    !check(path, why, sizeof(why)))
		warn(r, line, option, why);
}

/* No word of the URI is repeated: it may have a password. */
static void
check_postgresql(struct report *r)
{
	const struct conf *conf = r->conf;
	const struct store_module *module;
	char why[WHY];
	enum rc rc;

	rc = store_module_load(&module, why, sizeof(why));
	if (rc == RC_OK)
		rc = module->check(conf->database, why, sizeof(why));
	if (rc != RC_OK)
		warn(r, conf_line_of_server(conf, "database"), "database", why);
}

static void
world_check_server(struct report *r)
{
	const struct conf *conf = r->conf;
	const char *tmp = getenv("TMPDIR");

	if (conf_text_is_postgresql(conf->database))
		check_postgresql(r);
	else
		check_path(r, "database", conf->database, world_database);
	check_path(r, "socket", conf->socket, world_socket);
	check_path(r, "log", conf->log, world_log);
	if (conf->spool_dir != NULL)
		tmp = conf->spool_dir;
	else if (tmp == NULL || *tmp == '\0')
		tmp = "/tmp";
	check_path(r, "spool_dir", tmp, access_folder);
	if (conf->status_path != NULL)
		(void)check_star(r, conf_line_of_server(conf, "status_path"),
		    "status_path", conf->status_path);
	if (conf->admin_path != NULL)
		(void)check_star(r, conf_line_of_server(conf, "admin_path"),
		    "admin_path", conf->admin_path);
	else if (conf->admin_users.n > 0)
		warn(r, conf_line_of_server(conf, "admin_users"), "admin_users",
		    "without admin_path there is no page on which they could "
		    "act: set admin_path");
}

static void
check_directory(
    struct report *r, const struct conf_program *program, conf_line line)
{
	const char *path = program->directory;
	struct user as;
	char why[WHY];

	if (path != NULL && check_star(r, line, "directory", path) &&
	    user_find(program->user, program->group, &as, why, sizeof(why)) &&
	    !progcheck_folder(path, &as, why, sizeof(why)))
		warn(r, line, "directory", why);
}

/* The option that makes the program another user's: user, or group alone. */
static void
check_become(struct report *r, const struct conf_program *program)
{
	struct user as;
	char why[WHY];
	bool group;

	if (!user_find(program->user, program->group, &as, why, sizeof(why)) ||
	    user_may_become(&as, why, sizeof(why)))
		return;
	group = program->group != NULL && as.uid == geteuid();
	warn(r, group ? program->group_line : program->user_line,
	    group ? "group" : "user", why);
}

/* Whether it is the PHP of the command line: bin/php, bin/php8.2.  Debian's
 * cgi-bin/php is another one. */
static bool
is_php_cli(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash - path < 4 || memcmp(slash - 4, "/bin/php", 8) != 0)
		return false;
	path = slash + strlen("/php");
	return path[strspn(path, "0123456789.")] == '\0';
}

/* argv: the line of the option that names the program, or the application. */
static void
check_program(struct report *r, const char *option,
    const struct conf_program *program, conf_line argv)
{
	const char *path = program->argv.n > 0 ? program->argv.item[0] : NULL;
	struct user as;
	char why[WHY];

	if (path != NULL && strncmp(path, "unix:", 5) == 0 &&
	    check_star(r, argv, option, path) &&
	    !world_application(path + 5, why, sizeof(why)))
		warn(r, argv, option, why);
	/* settings.c has found the user and the group. */
	if (path == NULL || *path != '/' ||
	    !check_star(r, argv, option, path) ||
	    !user_find(program->user, program->group, &as, why, sizeof(why)))
		return;
	if (!progcheck(path, &as, why, sizeof(why)))
		warn(r, argv, option, why);
	else if (strcmp(option, "handler") == 0 && is_php_cli(path)) {
		(void)progcheck_fail(why, sizeof(why),
		    "%s: is the PHP of the command line, which prints no CGI "
		    "response: name php-cgi instead",
		    path);
		warn(r, argv, option, why);
	}
}

static void
check_unused(struct report *r, const struct conf_route *section)
{
	struct conf_unused found[CONF_UNUSED_MAX];
	const size_t n = conf_unused(r->conf, section, found);

	for (size_t i = 0; i < n; i++)
		warn(r, found[i].line, found[i].option, found[i].why);
}

/* A route's own programs; those of [defaults] are checked once. */
static void
world_check_route(struct report *r, const struct conf_route *route)
{
	const struct conf *conf = r->conf;
	const struct conf_route *defaults = &conf->defaults;
	const bool is_route = route != defaults;

	if (is_route)
		(void)check_star(r, route->line, "route", route->path);
	if (!is_route ||
	    route->handler.argv.item != defaults->handler.argv.item)
		check_program(r, "handler", &route->handler,
		    conf_line_of_route(conf, route, "handler"));
	if (!is_route ||
	    route->reconcile.argv.item != defaults->reconcile.argv.item)
		check_program(r, "reconcile", &route->reconcile,
		    conf_line_of_route(conf, route, "reconcile"));
	if (!is_route || route->handler.user != defaults->handler.user ||
	    route->handler.group != defaults->handler.group)
		check_become(r, &route->handler);
	if (!is_route ||
	    route->handler.directory != defaults->handler.directory)
		check_directory(r, &route->handler,
		    conf_line_of_route(conf, route, "directory"));
	check_unused(r, route);
}

/* A route, to be sorted. */
struct place {
	const struct conf_route *route;
};

/* In the order of the file. */
static int
world_by_line(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->route->line > y->route->line) -
	    (x->route->line < y->route->line);
}

unsigned
world_check(const struct conf *conf)
{
	struct place *routes;
	struct report r = { conf, 0 };

	world_check_server(&r);
	world_check_route(&r, &conf->defaults);
	routes = calloc(conf->nroutes + 1, sizeof(*routes));
	if (routes == NULL)
		return r.n;
	for (size_t i = 0; i < conf->nroutes; i++)
		routes[i].route = &conf->routes[i];
	qsort(routes, conf->nroutes, sizeof(*routes), world_by_line);
	for (size_t i = 0; i < conf->nroutes; i++)
		world_check_route(&r, routes[i].route);
	free(routes);
	for (size_t i = 0; i < conf->neffects; i++) {
		const struct conf_effect *effect = &conf->effects[i];

		check_program(&r, "program", &effect->program,
		    conf_line_of_effect(effect, "program"));
		check_become(&r, &effect->program);
		check_directory(&r, &effect->program,
		    conf_line_of_effect(effect, "directory"));
	}
	return r.n;
}
