/*
 * Configuration: the rules between two options of a file, and presets.
 *
 * Each rule names its options.  The line of a clash is that of the later
 * option.  Of several clashes the one with the smallest line is reported.
 * conf_build.c checks the rules for options that the command line can change.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf_option.h"
#include "conf_value.h"

struct clash {
	const struct conf *conf;
	const struct conf_route *route; /* that is looked at */
	const char *text;               /* NULL: none yet */
	conf_line line;
};

static void
clash_report(struct clash *clash, const char *text, conf_line line)
{
	if (clash->text != NULL && clash->line <= line)
		return;
	clash->text = text;
	clash->line = line;
}

/* b may be NULL: the clash is with an option that is missing. */
static void
report_route(
    struct clash *clash, const char *text, const char *a, const char *b)
{
	const struct conf *conf = clash->conf;
	conf_line x = conf_line_of_route(conf, clash->route, a),
		  y = b != NULL ? conf_line_of_route(conf, clash->route, b) : 0;

	clash_report(clash, text, x > y ? x : y);
}

/* What an application that oncewrap does not start cannot promise: its
 * processes are not known, and their end is not seen. */
static void
check_application(struct clash *clash)
{
	const struct conf_route *route = clash->route;

	if (conf_program_address(&route->handler) == NULL)
		return;
	if (route->on_crash == CONF_CRASH_RESUME)
		report_route(clash,
		    "on_crash = resume needs a handler that oncewrap starts: "
		    "it cannot be told when an application at a socket has "
		    "ended a lost request; write on_crash = unknown, or name "
		    "the "
		    "program and protocol = fastcgi",
		    "on_crash", "handler");
	/* The functions in PostgreSQL refuse an attempt that was given up. */
	if (route->share_database &&
	    !conf_text_is_postgresql(clash->conf->database))
		report_route(clash,
		    "share_database needs a handler that oncewrap starts: an "
		    "application at a socket may write to the file after its "
		    "request was given up; take it out, or name the program "
		    "and protocol = "
		    "fastcgi",
		    "share_database", "handler");
	if (route->handler.protocol == CONF_PROTOCOL_FASTCGI)
		report_route(clash,
		    "protocol = fastcgi keeps processes of a program: take it "
		    "out, for an application at a socket is FastCGI anyway",
		    "protocol", "handler");
}

static void
clash_check_route(struct clash *clash)
{
	const struct conf *conf = clash->conf;
	const struct conf_route *route = clash->route;

	check_application(clash);
	if (route->key_min_length > route->key_max_length)
		report_route(clash, "key_min_length is above key_max_length",
		    "key_min_length", "key_max_length");
	if (route->scope_required && route->scope.n == 0)
		report_route(clash,
		    "scope_required needs a scope other than none",
		    "scope_required", "scope");
	if (conf_has_preset(route, CONF_PRESET_WEBHOOK) &&
	    (conf_line_of_route(conf, route, "key_from") == 0 ||
		conf_preset_set(&route->origin, "key_from")))
		report_route(clash,
		    "preset = webhook needs a key_from that names the sender's "
		    "id, such as header:X-GitHub-Delivery or json:/id",
		    "preset", NULL);
	if (conf_has_preset(route, CONF_PRESET_PHP_CGI) &&
	    route->handler.protocol == CONF_PROTOCOL_FASTCGI)
		report_route(clash,
		    "preset = php-cgi runs a process for each request, whose "
		    "exit status tells what became of the script: take "
		    "protocol out, or use preset = php-fpm",
		    "preset", "protocol");
	if (route->async != CONF_ASYNC_NEVER && conf->status_path == NULL)
		report_route(clash, "async needs a status_path in [server]",
		    "async", NULL);
	if (route->concurrent == CONF_CONCURRENT_ACCEPT &&
	    conf->status_path == NULL)
		report_route(clash,
		    "concurrent = accept needs a status_path in [server]",
		    "concurrent", NULL);
	if (route->max_request_age > 0 && route->request_timestamp == NULL)
		report_route(clash, "max_request_age needs a request_timestamp",
		    "max_request_age", NULL);
	/* An age of 0 lets a route do without a timestamp. */
	if (route->request_timestamp != NULL &&
	    conf_line_of_route(conf, route, "max_request_age") == 0)
		report_route(clash, "request_timestamp needs a max_request_age",
		    "request_timestamp", NULL);
}

/* Whether upper is lower, or above it. */
static bool
is_above(const char *upper, const char *lower)
{
	size_t n = strlen(upper);

	return strncmp(upper, lower, n) == 0 &&
	    (lower[n] == '\0' || lower[n] == '/');
}

static void
clash_check_server(struct clash *clash)
{
	const struct conf *conf = clash->conf;
	const char *admin = conf->admin_path, *status = conf->status_path;
	conf_line x, y;

	if (admin == NULL || status == NULL ||
	    (!is_above(admin, status) && !is_above(status, admin)))
		return;
	x = conf_line_of_server(conf, "admin_path");
	y = conf_line_of_server(conf, "status_path");
	clash_report(clash,
	    "admin_path and status_path must not be equal, or one below the "
	    "other",
	    x > y ? x : y);
}

const char *
conf_clash(const struct conf *conf, conf_line *where)
{
	struct clash clash = { .conf = conf };

	clash_check_server(&clash);
	for (size_t i = 0; i <= conf->nroutes; i++) {
		clash.route =
		    i < conf->nroutes ? &conf->routes[i] : &conf->defaults;
		clash_check_route(&clash);
	}
	for (size_t i = 0; i < conf->neffects; i++)
		if (conf->effects[i].program.argv.n == 0)
			clash_report(&clash, "the effect needs a program",
			    conf->effects[i].line);
	*where = clash.line;
	return clash.text;
}

/* --- presets ---------------------------------------------------------- */

/*
 * What a preset says is written as in a file.  The last step is not a preset:
 * it is what the handler of a route, once it is known, makes of the defaults.
 */

static const struct preset_value {
	enum conf_preset preset;
	const char *name, *value;
} presets[] = {
	{ CONF_PRESET_FORM, "key_from",
	    "header:Idempotency-Key form:once_key query:once_key" },
	{ CONF_PRESET_FORM, "concurrent", "wait" },
	/* The browser threw the first response away, with the session's cookie
	 * in it: the replay must bring that. */
	{ CONF_PRESET_FORM, "replay_drop", "Date" },
	/* The sender repeats what failed, and a forged call must not occupy the
	 * id of a genuine one. */
	{ CONF_PRESET_WEBHOOK, "methods", "POST" },
	{ CONF_PRESET_WEBHOOK, "key", "required" },
	{ CONF_PRESET_WEBHOOK, "release", "400 401 403 407 408 425 429 5xx" },
	{ CONF_PRESET_WEBHOOK, "ambiguous", "" },
	{ CONF_PRESET_WEBHOOK, "exit_status", "release" },
	{ CONF_PRESET_WEBHOOK, "on_crash", "resume" },
	{ CONF_PRESET_WEBHOOK, "fingerprint", "none" },
	/* With php-fpm a script that died has an unknown outcome. */
	{ CONF_PRESET_WEBHOOK, "outcome", "status" },
	/* A fatal error ends php-cgi with 255; a warning does not. */
	{ CONF_PRESET_PHP_CGI, "handler", "/usr/bin/php-cgi" },
	{ CONF_PRESET_PHP_CGI, "exit_status", "check" },
	{ CONF_PRESET_PHP_CGI, "outcome", "status" },
	/* php-fpm says of no script how it ended: the prepend file does. */
	{ CONF_PRESET_PHP_FPM, "outcome", "explicit" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t
index_of(const char *option)
{
	const struct conf_option *found = conf_option_find(CONF_ROUTE, option);

	assert(found != NULL);
	return conf_option_index(found);
}

static conf_line
line_of_preset(const struct conf_origin *origin)
{
	return conf_option_line(origin, CONF_ROUTE, "preset");
}

bool
conf_preset_set(const struct conf_origin *origin, const char *option)
{
	const conf_line at = line_of_preset(origin);

	return at != 0 && conf_option_line(origin, CONF_ROUTE, option) == at;
}

/* Two presets of one route disagree about an option that it leaves open. */
static bool
presets_disagree(const struct preset_value *v, struct conf_error *why)
{
	return conf_value_fail(
	    why, "preset: the presets disagree about %s: set it too", v->name);
}

static bool
preset_apply(
    struct conf_route *route, struct conf_arena *arena, struct conf_error *why)
{
	struct conf_origin *origin = &route->origin;
	const conf_line at = line_of_preset(origin);
	const char *given[CONF_OPTION_MAX] = { NULL };
	const struct preset_value *v;
	size_t i;

	for (v = presets; v < presets + COUNT(presets); v++) {
		i = index_of(v->name);
		if (at == 0 || !conf_has_preset(route, v->preset) ||
		    (origin->line[i] != 0 && given[i] == NULL))
			continue;
		if (given[i] != NULL && strcmp(given[i], v->value) != 0)
			return presets_disagree(v, why);
		given[i] = v->value;
		origin->line[i] = at;
		if (!conf_option_set(conf_option_find(CONF_ROUTE, v->name),
			route, v->value, arena, why))
			return false;
	}
	return true;
}

/* An application that oncewrap does not start: its end cannot be seen, and a
 * plain 500 may come of a script that died. */
static bool
fit_application(const struct conf *conf, struct conf_route *route,
    struct conf_arena *arena, struct conf_error *why)
{
	static const char *const values[][2] = {
		{ "ambiguous", "500-502 504-599" },
		{ "release", "401 407 408 425 429 503" },
	};
	conf_line at = conf_line_of_route(conf, route, "on_crash");
	size_t i;

	if (conf_program_address(&route->handler) == NULL)
		return true;
	if (at != 0 && at == conf_line_of_route(conf, route, "preset"))
		route->on_crash = CONF_CRASH_UNKNOWN;
	for (i = 0; i < COUNT(values); i++)
		/* Where the end is told, a status means what it says. */
		if (route->outcome == CONF_OUTCOME_STATUS &&
		    conf_line_of_route(conf, route, values[i][0]) == 0 &&
		    !conf_option_set(conf_option_find(CONF_ROUTE, values[i][0]),
			route, values[i][1], arena, why))
			return false;
	return true;
}

bool
conf_preset(struct conf *conf, conf_line *where, struct conf_error *why)
{
	struct conf_route plain = conf->defaults, *route;
	struct conf_arena *arena = conf_arena(conf);

	*where = line_of_preset(&conf->defaults.origin);
	if (!preset_apply(&conf->defaults, arena, why))
		return false;
	for (size_t i = 0; i < conf->nroutes; i++) {
		route = &conf->routes[i];
		*where = line_of_preset(&route->origin);
		if (!preset_apply(route, arena, why))
			return false;
		conf_option_inherit(
		    route, *where != 0 ? &plain : &conf->defaults);
		if (!fit_application(conf, route, arena, why))
			return false;
	}
	/* Last the defaults: no route inherits this. */
	return fit_application(conf, &conf->defaults, arena, why);
}
