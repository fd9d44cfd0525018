/*
 * Configuration: options of a file that have no effect.
 *
 * An option of [defaults] holds for each route that does not set it itself, so
 * it has an effect if one of those uses it.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>

#include "conf_option.h"

#include "conf_unused.h"

/* What an option needs in order to have an effect. */
enum need {
	NEED_PROGRAM,  /* a program that oncewrap starts */
	NEED_PROCESSES /* a handler whose processes oncewrap keeps */
};

/* All other options of a route have an effect with each kind of handler.
 * `environment` has: an application gets the variables as parameters. */
static const struct {
	const char *option;
	enum need need;
} needs[] = {
	{ "kill_after", NEED_PROGRAM },
	{ "directory", NEED_PROGRAM },
	{ "umask", NEED_PROGRAM },
	{ "no_new_privs", NEED_PROGRAM },
	{ "user", NEED_PROGRAM },
	{ "group", NEED_PROGRAM },
	{ "processes", NEED_PROCESSES },
	{ "max_requests", NEED_PROCESSES },
};

#define NEEDS (sizeof(needs) / sizeof(needs[0]))

_Static_assert(NEEDS <= CONF_UNUSED_MAX, "options without an effect");

static bool
route_has(const struct conf_route *route, enum need need)
{
	const bool starts = conf_program_address(&route->handler) == NULL;

	switch (need) {
	case NEED_PROGRAM: /* the reconciler runs as the handler does */
		return starts || route->reconcile.argv.n > 0;
	case NEED_PROCESSES:
		return starts &&
		    route->handler.protocol == CONF_PROTOCOL_FASTCGI;
	}
	assert(false);
	return false;
}

/* Whether one that inherits the option from [defaults] has what it needs. */
static bool
heir_has(const struct conf *conf, size_t option, enum need need)
{
	for (size_t i = 0; i < conf->nroutes; i++)
		if (conf->routes[i].origin->line[option] == 0 &&
		    route_has(&conf->routes[i], need))
			return true;
	return false;
}

static void
explain_unused(const struct conf *conf, const struct conf_route *section,
    struct conf_unused *out)
{
	const char *address = conf_program_address(&section->handler);
	const bool is_route = section != &conf->defaults;
	char name[256];

	(void)snprintf(name, sizeof(name), "%s%.200s",
	    is_route ? "route " : "defaults", section->path);
	if (address != NULL)
		(void)snprintf(out->why, sizeof(out->why),
		    "has no effect in [%s], whose handler is an address: take "
		    "it out, and set the like where the application at %.200s "
		    "is started",
		    name, address);
	else
		(void)snprintf(out->why, sizeof(out->why),
		    "has no effect in [%s] without protocol = fastcgi: take it "
		    "out, or add that line",
		    name);
}

size_t
conf_unused(const struct conf *conf, const struct conf_route *section,
    struct conf_unused out[CONF_UNUSED_MAX])
{
	const struct conf_origin *origin = section->origin;
	size_t n = 0, option;

	if (origin == NULL) /* there is no file */
		return 0;
	for (size_t i = 0; i < NEEDS; i++) {
		option = conf_option_index(
		    conf_option_find(CONF_ROUTE, needs[i].option));
		if (origin->line[option] == 0 ||
		    route_has(section, needs[i].need) ||
		    (section == &conf->defaults &&
			heir_has(conf, option, needs[i].need)))
			continue;
		out[n].option = needs[i].option;
		out[n].line = origin->line[option];
		explain_unused(conf, section, &out[n++]);
	}
	return n;
}
