/*
 * Each check reports the first thing that is wrong with one option.  The user
 * is that of this process: a check as root finds what a daemon that runs as
 * root would meet.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf_value.h"
#include "handler.h"
#include "log.h"
#include "progcheck.h"
#include "route.h"
#include "spool.h"
#include "store_module.h"
#include "user.h"

#include "world.h"

#include "check.h"

/* --- warnings ------------------------------------------------------------- */

/* A warning begins with its line, in so many digits, for the order. */
#define LINE_DIGITS 10

struct check {
	const struct conf *conf;
	char **warning;
	size_t n;
	char why[2048]; /* room for the next one */
};

/* Adds what c->why says of an option.  line: 0 for one of the command line, or
 * of none. */
static void
warn(struct check *c, conf_line line, const char *option)
{
	const char *file = c->conf->file;
	char **more = realloc(c->warning, (c->n + 1) * sizeof(*more));
	char number[16] = "";

	if (file != NULL && line != 0)
		(void)snprintf(number, sizeof(number), ":%u", line);
	if (more == NULL ||
	    asprintf(&more[c->n], "%0*u%.200s%s: warning: %.100s: %s",
		LINE_DIGITS, line, file != NULL ? file : "oncewrap", number,
		option, c->why) == -1) {
		perror("oncewrap");
		exit(EXIT_FAILURE);
	}
	c->warning = more;
	c->n++;
}

static void __attribute__((format(printf, 4, 5))) warnf(struct check *c,
    conf_line line, const char *option, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(c->why, sizeof(c->why), format, args);
	va_end(args);
	warn(c, line, option);
}

static int
compare_warnings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each once: several routes may inherit a line, and each of them warns. */
static void
write_warnings(struct check *c)
{
	if (c->n > 0)
		qsort(
		    c->warning, c->n, sizeof(c->warning[0]), compare_warnings);
	for (size_t i = 0; i < c->n; i++) {
		if (i == 0 || strcmp(c->warning[i - 1], c->warning[i]) != 0)
			log_text(LOG_WARN, c->warning[i] + LINE_DIGITS);
	}
	while (c->n > 0)
		free(c->warning[--c->n]);
	free(c->warning);
}

/* --- [oncewrap] ----------------------------------------------------------- */

/* No option is a pattern.  False: it was reported. */
static bool
check_star(
    struct check *c, conf_line line, const char *option, const char *path)
{
	if (strchr(path, '*') == NULL)
		return true;
	warnf(c, line, option,
	    "\"%.1000s\": a * stands for itself here, and not for other names",
	    path);
	return false;
}

/* The folder of a log or socket.  Whatever else is wrong with it is said by
 * then. */
static bool
check_private(const char *path, char *why, size_t size)
{
	if (strncmp(path, "unix:", 5) == 0)
		path += 5;
	return strcmp(path, "stderr") == 0 || strcmp(path, "syslog") == 0 ||
	    strncmp(path, "fd:", 3) == 0 || strncmp(path, "tcp:", 4) == 0 ||
	    world_private(path, why, size);
}

/* No word of the URI is repeated: it may have a password. */
static void
check_postgresql(struct check *c)
{
	const struct store_module *module;
	enum rc rc;

	rc = store_module_load(&module, c->why, sizeof(c->why));
	if (rc == RC_OK)
		rc = module->check(c->conf->database, c->why, sizeof(c->why));
	if (rc != RC_OK)
		warn(c, conf_line_of_server(c->conf, "database"), "database");
}

/* The paths of the section, unless the database is a URI. */
static void
check_paths(struct check *c)
{
	const struct conf *conf = c->conf;
	const struct {
		const char *option, *path;
		bool (*check)(const char *, char *, size_t);
		/* after that */
		bool (*also)(const char *, char *, size_t);
	} paths[] = {
		{ "database", conf->database, world_database, NULL },
		{ "socket", conf->socket, world_socket, check_private },
		{ "log", conf->log, world_log, check_private },
		{ "spool_dir",
		    conf->spool_dir != NULL ? conf->spool_dir
					    : spool_default_dir(),
		    world_folder, NULL },
		{ "problem_pages", conf->problem_pages, world_pages, NULL },
		{ "status_path", conf->status_path, NULL, NULL },
		{ "admin_path", conf->admin_path, NULL, NULL },
	};
	size_t i = conf_text_is_postgresql(conf->database) ? 1 : 0;

	for (; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *option = paths[i].option, *path = paths[i].path;
		const conf_line line = conf_line_of_server(conf, option);

		if (path == NULL)
			continue;
		if (check_star(c, line, option, path) &&
		    paths[i].check != NULL &&
		    !paths[i].check(path, c->why, sizeof(c->why)))
			warn(c, line, option);
		if (paths[i].also != NULL &&
		    !paths[i].also(path, c->why, sizeof(c->why)))
			warn(c, line, option);
	}
}

/* --- programs ------------------------------------------------------------- */

/* The users and the folder of a program; the lines are those of user, group and
 * directory.  settings.c has found the user and the group. */
static void
check_place(struct check *c, const struct conf_program *program,
    conf_line user_line, conf_line group_line, conf_line line)
{
	const char *path = program->directory;
	struct user as;
	bool group;

	if (!user_find(
		program->user, program->group, &as, c->why, sizeof(c->why)))
		return;
	/* The option that makes it another user's: user, or group alone. */
	group = program->group != NULL && as.uid == geteuid();
	if (!user_may_become(&as, c->why, sizeof(c->why)))
		warn(c, group ? group_line : user_line,
		    group ? "group" : "user");
	if (path != NULL && check_star(c, line, "directory", path) &&
	    !progcheck_folder(path, &as, c->why, sizeof(c->why)))
		warn(c, line, "directory");
}

/* Whether the text is the name, perhaps with a version: php8.2. */
static bool
is_version_of(const char *text, const char *name)
{
	const size_t n = strlen(name);

	return strncmp(text, name, n) == 0 &&
	    text[n + strspn(text + n, "0123456789.")] == '\0';
}

/* Whether it is the PHP of the command line: bin/php, bin/php8.2.  Debian's
 * cgi-bin/php is another one. */
static bool
is_php_cli(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash - path >= 4 && memcmp(slash - 4, "/bin/", 5) == 0 &&
	    is_version_of(slash + 1, "php");
}

/* Whether its first argument, if that is a path, is a script. */
static bool
is_interpreter(const char *path)
{
	static const char *const names[] = { "perl", "python", "php", "ruby",
		"lua", "sh", "bash", "dash" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_version_of(strrchr(path, '/') + 1, names[i]))
			return true;
	return false;
}

/* argv: the line of the option that names the program, or the application. */
static void
check_program(struct check *c, const char *option,
    const struct conf_program *program, conf_line argv)
{
	const struct conf_list *words = &program->argv;
	const char *path = words->n > 0 ? words->item[0] : NULL;
	struct user as;

	if (path != NULL && strncmp(path, "unix:", 5) == 0 &&
	    check_star(c, argv, option, path) &&
	    !world_application(path + 5, c->why, sizeof(c->why)))
		warn(c, argv, option);
	/* settings.c has found the user and the group. */
	if (path == NULL || *path != '/' ||
	    !check_star(c, argv, option, path) ||
	    !user_find(
		program->user, program->group, &as, c->why, sizeof(c->why)))
		return;
	if (!progcheck(path, &as, c->why, sizeof(c->why)))
		warn(c, argv, option);
	else if (strcmp(option, "handler") == 0 && is_php_cli(path))
		warnf(c, argv, option,
		    "%s: is the PHP of the command line, which prints no CGI "
		    "response: name php-cgi instead",
		    path);
	else if (words->n > 1 && *words->item[1] == '/' &&
	    is_interpreter(path) && access(words->item[1], F_OK) == -1 &&
	    errno == ENOENT)
		/* Its exit status would make each key unknown. */
		warnf(c, argv, option, "%s: there is no such script",
		    words->item[1]);
}

/* --- routes --------------------------------------------------------------- */

/* The IANA registry, and what UPnP, caches and CalDAV use. */
static const char *const methods[] = { CONF_UNSAFE, "ACL", "BASELINE-CONTROL",
	"BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET",
	"HEAD", "LABEL", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY",
	"MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "NOTIFY",
	"OPTIONS", "ORDERPATCH", "PATCH", "POST", "PROPFIND", "PROPPATCH",
	"PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SUBSCRIBE",
	"TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
	"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", NULL };

/* RFC 3875, section 4.1, and what web servers add; with a "_" at the end, all
 * that begin so: of fields, cookies, and modules for TLS, logins and places. */
static const char *const variables[] = { "AUTH_TYPE", "AUTH_USER",
	"AUTHENTICATE_", "AUTHORIZE_", "CONTENT_LENGTH", "CONTENT_TYPE",
	"CONTEXT_DOCUMENT_ROOT", "CONTEXT_PREFIX", "DOCUMENT_ROOT",
	"DOCUMENT_URI", "FCGI_", "GATEWAY_INTERFACE", "GEOIP_", "HTTP_",
	"HTTPS", "MELLON_", "OIDC_", "PATH_INFO", "PATH_TRANSLATED",
	"QUERY_STRING", "REDIRECT_", "REMOTE_ADDR", "REMOTE_HOST",
	"REMOTE_IDENT", "REMOTE_PORT", "REMOTE_USER", "REQUEST_ID",
	"REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SCRIPT_FILENAME",
	"SCRIPT_NAME", "SERVER_ADDR", "SERVER_ADMIN", "SERVER_NAME",
	"SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE", "SSL_",
	"UNIQUE_ID", NULL };

static bool
is_known(const char *const *list, const char *name)
{
	size_t n;

	for (; *list != NULL; list++) {
		n = strlen(*list);
		if (strncmp(name, *list, n) == 0 &&
		    ((*list)[n - 1] == '_' || name[n] == '\0'))
			return true;
	}
	return false;
}

/* Names that are well-formed and may match nothing: a guard that a slip of the
 * pen has switched off, or callers that share their keys. */
static void
check_names(struct check *c, conf_line line, const char *option,
    const struct conf_list *list, const char *why)
{
	const bool is_scope = strcmp(option, "scope") == 0;

	for (size_t i = 0; i < list->n; i++)
		if ((!is_scope || strncmp(list->item[i], "cookie:", 7) != 0) &&
		    !is_known(is_scope ? variables : methods, list->item[i]))
			warnf(c, line, option, "\"%.200s\" is no %s",
			    list->item[i], why);
}

/* A route that no request reaches. */
static void
check_hidden(struct check *c, const struct conf_route *route)
{
	const struct conf *conf = c->conf;
	const bool admin = route_is_admin(conf, route->path);

	if (admin || route_is_status(conf, route->path))
		warnf(c, route->line, "route",
		    "[route %.1000s] is below %s = %.500s, so no request "
		    "reaches it: name another path",
		    route->path, admin ? "admin_path" : "status_path",
		    admin ? conf->admin_path : conf->status_path);
}

/* An application at an address whose ends are told by once-prepend.php. */
static void
check_prepend(struct check *c, const struct conf_route *route)
{
	const char *address = conf_program_address(&route->handler);
	char path[PATH_MAX];

	if (address != NULL && conf_has_preset(route, CONF_PRESET_PHP_CGI))
		warnf(c, conf_line_of_route(c->conf, route, "handler"),
		    "handler",
		    "is an address, which tells no exit status, so with "
		    "preset = php-cgi the cut answer of a script that died "
		    "counts as whole: write php-fpm instead of php-cgi");
	/* One on TCP may have its files on another host. */
	if (address == NULL || strncmp(address, "unix:", 5) != 0)
		return;
	if (route->handler.php_prepend) {
		handler_prepend(path, sizeof(path));
		if (access(path, F_OK) == -1)
			warnf(c, conf_line_of_route(c->conf, route, "preset"),
			    "preset",
			    "%.1000s: %s: without this file PHP runs no "
			    "script: install it, or take php-fpm out of preset",
			    path, strerror(errno));
	} else if (route->outcome == CONF_OUTCOME_EXPLICIT &&
	    strstr(address, "php") != NULL)
		warnf(c, conf_line_of_route(c->conf, route, "outcome"),
		    "outcome",
		    "php-fpm says no outcome, so each key becomes unknown "
		    "unless PHP runs once-prepend.php first: add php-fpm to "
		    "preset");
}

/* Options of programs that oncewrap starts, where it starts none: the
 * application has users and folders of its own. */
static void
check_unused(struct check *c, const struct conf_route *route)
{
	static const char *const options[] = { "kill_after", "directory",
		"umask", "no_new_privs", "user", "group", "processes",
		"max_requests" };
	const char *address = conf_program_address(&route->handler);
	conf_line line;

	/* Routes may have the handlers that use those of [defaults]. */
	if (address == NULL || route->reconcile.argv.n > 0 ||
	    (route == &c->conf->defaults && c->conf->nroutes > 0))
		return;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if ((line = conf_line_of_own(route, options[i])) != 0)
			warnf(c, line, options[i],
			    "has no effect in [%s%.200s], whose handler is an "
			    "address: take it out, and set the like where the "
			    "application at %.200s is started",
			    route->path[0] != '\0' ? "route " : "defaults",
			    route->path, address);
}

/* What it has from [defaults] is warned of once. */
static void
check_route(struct check *c, const struct conf_route *route)
{
	const struct conf *conf = c->conf;

	if (route != &conf->defaults) {
		(void)check_star(c, route->line, "route", route->path);
		check_hidden(c, route);
	}
	check_names(c, conf_line_of_route(conf, route, "methods"), "methods",
	    &route->methods,
	    "registered method, and guards nothing if no client sends it: "
	    "write one such as POST, PUT, PATCH or DELETE, or unsafe");
	check_names(c, conf_line_of_route(conf, route, "scope"), "scope",
	    &route->scope,
	    "variable that a web server sends by itself, and tells no callers "
	    "apart unless yours sets it: a field such as X-User is "
	    "HTTP_X_USER");
	/* A key from a form, where nothing tells callers apart. */
	if (conf_has_preset(route, CONF_PRESET_FORM) && route->scope.n == 0)
		warnf(c, conf_line_of_route(conf, route, "scope"), "scope",
		    "none, with preset = form: a browser whose address and "
		    "cookies both change gets key-of-another for its own key: "
		    "name what tells users apart, such as REMOTE_USER or "
		    "cookie:NAME");
	check_prepend(c, route);
	check_program(c, "handler", &route->handler,
	    conf_line_of_route(conf, route, "handler"));
	check_program(c, "reconcile", &route->reconcile,
	    conf_line_of_route(conf, route, "reconcile"));
	check_place(c, &route->handler, conf_line_of_route(conf, route, "user"),
	    conf_line_of_route(conf, route, "group"),
	    conf_line_of_route(conf, route, "directory"));
	check_unused(c, route);
}

void
check_warn(const struct conf *conf)
{
	struct check c = { .conf = conf };
	const struct conf_effect *effect;

	if (conf_text_is_postgresql(conf->database))
		check_postgresql(&c);
	check_paths(&c);
	check_program(&c, "on_attention", &conf->on_attention,
	    conf_line_of_server(conf, "on_attention"));
	if (conf->admin_path == NULL && conf->admin_users.n > 0)
		warnf(&c, conf_line_of_server(conf, "admin_users"),
		    "admin_users",
		    "without admin_path there is no page on which they could "
		    "act: set admin_path");
	check_route(&c, &conf->defaults);
	for (size_t i = 0; i < conf->nroutes; i++)
		check_route(&c, &conf->routes[i]);
	for (size_t i = 0; i < conf->neffects; i++) {
		effect = &conf->effects[i];
		check_program(&c, "program", &effect->program,
		    conf_line_of_effect(effect, "program"));
		check_place(&c, &effect->program,
		    conf_line_of_effect(effect, "user"),
		    conf_line_of_effect(effect, "group"),
		    conf_line_of_effect(effect, "directory"));
	}
	write_warnings(&c);
}
