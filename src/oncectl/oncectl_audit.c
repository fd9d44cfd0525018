/*
 * oncectl audit: what takes unsafe methods and does not require a key.
 *
 * A route is judged by the same function as a request, with the method that
 * every CGI program may be asked by, POST.  PUT and DELETE are idempotent (RFC
 * 9110, section 9.2.2), and PATCH is left out because a program does not show
 * whether it takes PATCH.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route.h"
#include "oncectl.h"

struct finding {
	const char *kind;  /* "route", "defaults" or "program" */
	const char *path;  /* of requests */
	const char *where; /* file:line, or the program */
	const char *key;   /* the route's option */
	const char *why;
};

#define AT(member) offsetof(struct finding, member)
static const struct oncectl_column columns[] = {
	{ "kind", "KIND", 1, 8, AT(kind), ONCECTL_TEXT },
	{ "path", "PATH", 2, 24, AT(path), ONCECTL_TEXT },
	{ "where", "WHERE", 4, 0, AT(where), ONCECTL_TEXT },
	{ "key", NULL, 0, 0, AT(key), ONCECTL_TEXT },
	{ "why", "WHY", 3, 22, AT(why), ONCECTL_TEXT },
};
#undef AT
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

struct audit {
	struct oncectl *ctl;
	struct oncectl_table table;
	size_t found;
	bool failed; /* something could not be looked at */
	bool open;   /* there may be programs that were not looked for */
};

/* --- findings ----------------------------------------------------------- */

static const char *const key_words[] = { CONF_KEYS(WORDS_WORD) };

/* Why a POST without a key runs there; NULL: it does not. */
static const char *
why_open(const struct conf_route *route)
{
	const struct request post = {
		.method = "POST", .path = "/", .query = "", .body_fd = -1
	};

	if (route_guards(route, &post) == ROUTE_GUARDED)
		return NULL;
	if (route->key == CONF_KEY_REQUIRED)
		return "POST is not in methods";
	return route->key == CONF_KEY_IGNORE ? "key = ignore"
					     : "key = optional";
}

static void
audit_report(struct audit *a, const struct finding *f)
{
	a->found++;
	oncectl_print_row(&a->table, f);
}

/* Looks at a route, or at the defaults. */
static void
look_at_route(struct audit *a, const char *kind, const struct conf_route *route)
{
	const char *path = route->path[0] != '\0' ? route->path : "/";
	struct finding f = { kind, path, NULL, key_words[route->key],
		why_open(route) };
	char *where = NULL;

	if (f.why == NULL)
		return;
	f.where = a->ctl->config;
	if (route->line != 0) {
		if (asprintf(&where, "%s:%u", f.where, route->line) == -1)
			where = NULL;
		f.where = oncectl_print_keep(where);
	}
	audit_report(a, &f);
}

/* --- programs under a document root ------------------------------------- */

/* Interpreters that a route names need no executable file. */
static bool
is_script(const char *name)
{
	static const char *const suffixes[] = { ".php", ".pl", ".py", ".cgi",
		".fcgi", ".rb", ".sh", ".lua", ".tcl" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0;
	     dot != NULL && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(dot, suffixes[i]) == 0)
			return true;
	return false;
}

static void
look_at_file(struct audit *a, const char *path, char *file, unsigned mode)
{
	const struct conf *conf = a->ctl->conf;
	const struct conf_route *route = route_find(conf, path);
	struct finding f = { "program", path, file, key_words[route->key],
		why_open(route) };

	if (f.why == NULL || route_is_admin(conf, path) ||
	    route_is_status(conf, path))
		return;
	if ((mode & 0111) != 0 ||
	    (route->handler.argv.n > 0 && is_script(file)))
		audit_report(a, &f);
}

static void
audit_cannot(struct audit *a, const char *file)
{
	const int error = errno;

	warnx("%s: %s", oncectl_print_escaped(file), strerror(error));
	a->failed = true;
}

static void
not_followed(const char *path, const char *file)
{
	const char *name = oncectl_print_escaped(file);

	warnx("%s: a link to a folder, which is not followed; "
	      "--docroot %s=%s looks there",
	    name, oncectl_print_escaped(path), name);
}

static void
look_at_folder(struct audit *a, const char *path, const char *folder);

/* A link to a file is followed, one to a folder is not: it may lead to a folder
 * above, or out of the document root. */
static void
look_at_entry(struct audit *a, const char *path, char *file)
{
	struct stat st, target;

	if (lstat(file, &st) == -1) {
		audit_cannot(a, file);
	} else if (S_ISDIR(st.st_mode)) {
		look_at_folder(a, path, file);
	} else if (S_ISREG(st.st_mode)) {
		look_at_file(a, path, file, st.st_mode);
	} else if (S_ISLNK(st.st_mode) && stat(file, &target) == 0) {
		if (S_ISREG(target.st_mode))
			look_at_file(a, path, file, target.st_mode);
		else if (S_ISDIR(target.st_mode))
			not_followed(path, file);
	}
}

static int
is_no_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 &&
	    strcmp(entry->d_name, "..") != 0;
}

/* path is the folder's path in requests, without a slash at its end. */
static void
look_at_folder(struct audit *a, const char *path, const char *folder)
{
	struct dirent **entries = NULL;
	char *below, *file;
	int n = scandir(folder, &entries, is_no_dots, alphasort);

	if (n == -1)
		audit_cannot(a, folder);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (asprintf(&below, "%s/%s", path, name) == -1 ||
		    asprintf(&file, "%s/%s", folder, name) == -1)
			errx(ONCECTL_REFUSED, "%s", rc_text(RC_NOMEM));
		look_at_entry(a, below, file);
		free(file);
		free(below);
		free(entries[i]);
	}
	free(entries);
}

/* "DIR", or "/prefix=DIR" for a folder that the web server has elsewhere. */
static void
look_at_root(struct audit *a, const char *root)
{
	const char *equals = root[0] == '/' ? strchr(root, '=') : NULL;
	size_t n = equals != NULL ? (size_t)(equals - root) : 0;
	char *prefix;

	while (n > 0 && root[n - 1] == '/')
		n--;
	prefix = strndup(root, n);
	if (prefix == NULL)
		errx(ONCECTL_REFUSED, "%s", rc_text(RC_NOMEM));
	look_at_folder(a, prefix, equals != NULL ? equals + 1 : root);
	free(prefix);
}

/* --- the command -------------------------------------------------------- */

static void
look_at_routes(struct audit *a)
{
	const struct conf *conf = a->ctl->conf;

	/* With a handler, or alone, the defaults are a route for all paths. */
	if (conf->defaults.handler.argv.n > 0 || conf->nroutes == 0)
		look_at_route(a, "defaults", &conf->defaults);
	else
		a->open =
		    a->ctl->ndocroots == 0 && why_open(&conf->defaults) != NULL;
	for (size_t i = 0; i < conf->nroutes; i++)
		look_at_route(a, "route", &conf->routes[i]);
}

int
oncectl_audit(struct oncectl *ctl)
{
	struct audit a = { .ctl = ctl,
		.table = {
		    ctl->json ? NULL : stdout, columns, NCOLUMNS, false } };

	if (ctl->config == NULL)
		return oncectl_refuse(
		    ONCECTL_USAGE, "audit: needs a configuration: -f");
	look_at_routes(&a);
	for (size_t i = 0; i < ctl->ndocroots; i++)
		look_at_root(&a, ctl->docroots[i]);
	if (a.open)
		warnx("audit: paths without a route run programs without a "
		      "key, too (%s in [defaults]); --docroot finds them",
		    why_open(&ctl->conf->defaults));
	else if (a.found == 0 && !a.failed && !ctl->json)
		puts("a key is required wherever unsafe methods are taken");
	return a.found > 0 || a.failed ? ONCECTL_REFUSED : ONCECTL_DONE;
}
