/*
 * Configuration: the rules between two options of a file.
 *
 * Each rule names its options.  The line of a clash is that of the later
 * option.  Of several clashes the one with the smallest line is reported.
 * conf_build.c checks the rules for options that the command line can change.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf_build.h"
#include "conf_text.h"

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
		conf_preset_set(route->origin, "key_from")))
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
