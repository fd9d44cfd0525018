/*
 * Each check reports the first thing that is wrong with one option.  The user
 * is that of this process: a check as root finds what a daemon that runs as
 * root would meet.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf_text.h"
#include "conf_unused.h"
#include "handler.h"
#include "progcheck.h"
#include "route.h"
#include "store_module.h"
#include "user.h"

#include "misspelt.h"
#include "problem_file.h"
#include "warnings.h"
#include "world.h"

#include "check.h"

#define WHY 2048

/* No option is a pattern.  False: it was reported. */
static bool
check_star(
    struct warnings *w, conf_line line, const char *option, const char *path)
{
	char why[WHY];

	if (strchr(path, '*') == NULL)
		return true;
	(void)snprintf(why, sizeof(why),
	    "\"%.1000s\": a * stands for itself here, and not for other names",
	    path);
	warnings_add(w, line, option, why);
	return false;
}

static void
check_path(struct warnings *w, const char *option, const char *path,
    bool (*check)(const char *, char *, size_t))
{
	const conf_line line = conf_line_of_server(w->conf, option);
	char why[WHY];

	if (path != NULL && check_star(w, line, option, path) &&
	    !check(path, why, sizeof(why)))
		warnings_add(w, line, option, why);
}

/* The folder of a log or socket.  Whatever else is wrong with it is said by
 * then. */
static void
check_private(struct warnings *w, const char *option, const char *path)
{
	char why[WHY];

	if (path != NULL && strncmp(path, "unix:", 5) == 0)
		path += 5;
	if (path != NULL && strcmp(path, "stderr") != 0 &&
	    strcmp(path, "syslog") != 0 && strncmp(path, "fd:", 3) != 0 &&
	    strncmp(path, "tcp:", 4) != 0 &&
	    !world_private(path, why, sizeof(why)))
		warnings_add(
		    w, conf_line_of_server(w->conf, option), option, why);
}

static bool
check_pages(const char *folder, char *why, size_t size)
{
	return world_pages(folder, why, size) &&
	    problem_file_names(folder, why, size);
}

/* No word of the URI is repeated: it may have a password. */
static void
check_postgresql(struct warnings *w)
{
	const struct conf *conf = w->conf;
	const struct store_module *module;
	char why[WHY];
	enum rc rc;

	rc = store_module_load(&module, why, sizeof(why));
	if (rc == RC_OK)
		rc = module->check(conf->database, why, sizeof(why));
	if (rc != RC_OK)
		warnings_add(
		    w, conf_line_of_server(conf, "database"), "database", why);
}

static void
check_directory(
    struct warnings *w, const struct conf_program *program, conf_line line)
{
	const char *path = program->directory;
	struct user as;
	char why[WHY];

	if (path != NULL && check_star(w, line, "directory", path) &&
	    user_find(program->user, program->group, &as, why, sizeof(why)) &&
	    !progcheck_folder(path, &as, why, sizeof(why)))
		warnings_add(w, line, "directory", why);
}

/* The option that makes the program another user's: user, or group alone. */
static void
check_become(struct warnings *w, const struct conf_program *program)
{
	struct user as;
	char why[WHY];
	bool group;

	if (!user_find(program->user, program->group, &as, why, sizeof(why)) ||
	    user_may_become(&as, why, sizeof(why)))
		return;
	group = program->group != NULL && as.uid == geteuid();
	warnings_add(w, group ? program->group_line : program->user_line,
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

/* Whether its first argument, if that is a path, is a script. */
static bool
is_interpreter(const char *path)
{
	static const char *const names[] = { "perl", "python", "php", "ruby",
		"lua", "sh", "bash", "dash" };
	const char *name = strrchr(path, '/') + 1;
	size_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = strlen(names[i]);
		if (strncmp(name, names[i], n) == 0 &&
		    name[n + strspn(name + n, "0123456789.")] == '\0')
			return true;
	}
	return false;
}

/* The exit status of an interpreter without its script would make each key
 * unknown. */
static void
check_script(struct warnings *w, const char *option,
    const struct conf_list *argv, conf_line line)
{
	char why[WHY];

	if (argv->n < 2 || *argv->item[1] != '/' ||
	    !is_interpreter(argv->item[0]) ||
	    access(argv->item[1], F_OK) == 0 || errno != ENOENT)
		return;
	(void)progcheck_fail(
	    why, sizeof(why), "%s: there is no such script", argv->item[1]);
	warnings_add(w, line, option, why);
}

/* argv: the line of the option that names the program, or the application. */
static void
check_program(struct warnings *w, const char *option,
    const struct conf_program *program, conf_line argv)
{
	const char *path = program->argv.n > 0 ? program->argv.item[0] : NULL;
	struct user as;
	char why[WHY];

	if (path != NULL && strncmp(path, "unix:", 5) == 0 &&
	    check_star(w, argv, option, path) &&
	    !world_application(path + 5, why, sizeof(why)))
		warnings_add(w, argv, option, why);
	/* settings.c has found the user and the group. */
	if (path == NULL || *path != '/' ||
	    !check_star(w, argv, option, path) ||
	    !user_find(program->user, program->group, &as, why, sizeof(why)))
		return;
	if (!progcheck(path, &as, why, sizeof(why)))
		warnings_add(w, argv, option, why);
	else if (strcmp(option, "handler") == 0 && is_php_cli(path)) {
		(void)progcheck_fail(why, sizeof(why),
		    "%s: is the PHP of the command line, which prints no CGI "
		    "response: name php-cgi instead",
		    path);
		warnings_add(w, argv, option, why);
	} else
		check_script(w, option, &program->argv, argv);
}

static void
check_daemon(struct warnings *w)
{
	const struct conf *conf = w->conf;
	const char *tmp = getenv("TMPDIR");

	if (conf_text_is_postgresql(conf->database))
		check_postgresql(w);
	else
		check_path(w, "database", conf->database, world_database);
	check_path(w, "socket", conf->socket, world_socket);
	check_private(w, "socket", conf->socket);
	check_path(w, "log", conf->log, world_log);
	check_private(w, "log", conf->log);
	if (conf->spool_dir != NULL)
		tmp = conf->spool_dir;
	else if (tmp == NULL || *tmp == '\0')
		tmp = "/tmp";
	check_path(w, "spool_dir", tmp, world_folder);
	check_program(w, "on_attention", &conf->on_attention,
	    conf_line_of_server(conf, "on_attention"));
	check_path(w, "problem_pages", conf->problem_pages, check_pages);
	if (conf->status_path != NULL)
		(void)check_star(w, conf_line_of_server(conf, "status_path"),
		    "status_path", conf->status_path);
	if (conf->admin_path != NULL)
		(void)check_star(w, conf_line_of_server(conf, "admin_path"),
		    "admin_path", conf->admin_path);
	else if (conf->admin_users.n > 0)
		warnings_add(w, conf_line_of_server(conf, "admin_users"),
		    "admin_users",
		    "without admin_path there is no page on which they could "
		    "act: set admin_path");
}

static void
check_unused(struct warnings *w, const struct conf_route *section)
{
	struct conf_unused found[CONF_UNUSED_MAX];
	const size_t n = conf_unused(w->conf, section, found);

	for (size_t i = 0; i < n; i++)
		warnings_add(w, found[i].line, found[i].option, found[i].why);
}

/* Options whose items may be misspelt. */
static void
check_spelling(struct warnings *w, const struct conf_route *route)
{
	const struct conf *conf = w->conf;
	const struct conf_source *part;
	char why[WHY];

	for (size_t i = 0; i < route->methods.n; i++)
		if (misspelt_method(route->methods.item[i], why, sizeof(why)))
			warnings_add(w,
			    conf_line_of_route(conf, route, "methods"),
			    "methods", why);
	for (size_t i = 0; i < route->scope.n; i++)
		if (misspelt_scope(route->scope.item[i], why, sizeof(why)))
			warnings_add(w,
			    conf_line_of_route(conf, route, "scope"), "scope",
			    why);
	for (size_t i = 0; i < route->key_from.n; i++)
		for (unsigned j = 0; j < route->key_from.item[i].n; j++) {
			part = &route->key_from.item[i].part[j];
			if (part->kind == CONF_FROM_HEADER &&
			    misspelt_field(part->name, why, sizeof(why)))
				warnings_add(w,
				    conf_line_of_route(conf, route, "key_from"),
				    "key_from", why);
		}
}

/* A route that no request reaches. */
static void
check_hidden(struct warnings *w, const struct conf_route *route)
{
	const struct conf *conf = w->conf;
	const bool admin = route_is_admin(conf, route->path);
	char why[WHY];

	if (!admin && !route_is_status(conf, route->path))
		return;
	(void)snprintf(why, sizeof(why),
	    "[route %.1000s] is below %s = %.500s, so no request reaches it: "
	    "name another path",
	    route->path, admin ? "admin_path" : "status_path",
	    admin ? conf->admin_path : conf->status_path);
	warnings_add(w, route->line, "route", why);
}

/* An application at an address whose ends are told by once-prepend.php. */
static void
check_prepend(struct warnings *w, const struct conf_route *route)
{
	const char *address = conf_program_address(&route->handler);
	char why[WHY], path[PATH_MAX];

	if (address != NULL && conf_has_preset(route, CONF_PRESET_PHP_CGI))
		warnings_add(w, conf_line_of_route(w->conf, route, "handler"),
		    "handler",
		    "is an address, which tells no exit status, so with "
		    "preset = php-cgi the cut answer of a script that died "
		    "counts as whole: write php-fpm instead of php-cgi");
	/* One on TCP may have its files on another host. */
	if (address == NULL || strncmp(address, "unix:", 5) != 0)
		return;
	if (route->handler.php_prepend) {
		handler_prepend(path, sizeof(path));
		if (access(path, F_OK) == 0)
			return;
		(void)snprintf(why, sizeof(why),
		    "%.1000s: %s: without this file PHP runs no script: "
		    "install it, or take php-fpm out of preset",
		    path, strerror(errno));
		warnings_add(w, conf_line_of_route(w->conf, route, "preset"),
		    "preset", why);
	} else if (route->outcome == CONF_OUTCOME_EXPLICIT &&
	    strstr(address, "php") != NULL) {
		warnings_add(w, conf_line_of_route(w->conf, route, "outcome"),
		    "outcome",
		    "php-fpm says no outcome, so each key becomes unknown "
		    "unless PHP runs once-prepend.php first: add php-fpm to "
		    "preset");
	}
}

/* A key from a form, where nothing tells callers apart. */
static void
check_form(struct warnings *w, const struct conf_route *route)
{
	if (conf_has_preset(route, CONF_PRESET_FORM) && route->scope.n == 0)
		warnings_add(w, conf_line_of_route(w->conf, route, "scope"),
		    "scope",
		    "none, with preset = form: a browser whose address and "
		    "cookies both change gets key-of-another for its own key: "
		    "name what tells users apart, such as REMOTE_USER or "
		    "cookie:NAME");
}

/* A route's own programs; those of [defaults] are checked once. */
static void
check_route(struct warnings *w, const struct conf_route *route)
{
	const struct conf *conf = w->conf;
	const struct conf_route *defaults = &conf->defaults;
	const bool is_route = route != defaults;

	if (is_route) {
		(void)check_star(w, route->line, "route", route->path);
		check_hidden(w, route);
	}
	check_spelling(w, route);
	check_form(w, route);
	check_prepend(w, route);
	if (!is_route ||
	    route->handler.argv.item != defaults->handler.argv.item)
		check_program(w, "handler", &route->handler,
		    conf_line_of_route(conf, route, "handler"));
	if (!is_route ||
	    route->reconcile.argv.item != defaults->reconcile.argv.item)
		check_program(w, "reconcile", &route->reconcile,
		    conf_line_of_route(conf, route, "reconcile"));
	if (!is_route || route->handler.user != defaults->handler.user ||
	    route->handler.group != defaults->handler.group)
		check_become(w, &route->handler);
	if (!is_route ||
	    route->handler.directory != defaults->handler.directory)
		check_directory(w, &route->handler,
		    conf_line_of_route(conf, route, "directory"));
	check_unused(w, route);
}

static void
check_effect(struct warnings *w, const struct conf_effect *effect)
{
	check_program(w, "program", &effect->program,
	    conf_line_of_effect(effect, "program"));
	check_become(w, &effect->program);
	check_directory(
	    w, &effect->program, conf_line_of_effect(effect, "directory"));
}

void
check_warn(const struct conf *conf)
{
	struct warnings w = { .conf = conf };

	check_daemon(&w);
	check_route(&w, &conf->defaults);
	for (size_t i = 0; i < conf->nroutes; i++)
		check_route(&w, &conf->routes[i]);
	for (size_t i = 0; i < conf->neffects; i++)
		check_effect(&w, &conf->effects[i]);
	warnings_write(&w);
}
