/*
 * Path -> route.  conf_parse.c has sorted the routes, longest path first, so
 * that the first match is the longest prefix.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "cginame.h"
#include "date.h"
#include "limit.h"

#include "key_search.h"
#include "route.h"

/* Whether prefix is path, or whole segments at its front. */
static bool
is_prefix(const char *prefix, const char *path)
{
	size_t n = strlen(prefix);

	if (n == 1) /* "/" is the prefix of everything */
		return true;
	return strncmp(prefix, path, n) == 0 &&
	    (path[n] == '\0' || path[n] == '/');
}

const struct conf_route *
route_find(const struct conf *conf, const char *path)
{
	assert(path[0] == '/');
	for (size_t i = 0; i < conf->nroutes; i++)
		if (is_prefix(conf->routes[i].path, path))
			return &conf->routes[i];
	return &conf->defaults;
}

bool
route_is_admin(const struct conf *conf, const char *path)
{
	return conf->admin_path != NULL && is_prefix(conf->admin_path, path);
}

bool
route_is_status(const struct conf *conf, const char *path)
{
	return conf->status_path != NULL && is_prefix(conf->status_path, path);
}

static bool
takes_method(const struct conf_route *route, const char *method)
{
	/* RFC 9110, section 9.2.1: the safe ones. */
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS", "TRACE" };

	if (!conf_list_has(&route->methods, CONF_UNSAFE))
		return conf_list_has(&route->methods, method);
	for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
		if (strcmp(method, safe[i]) == 0)
			return false;
	return true;
}

/* Whether an alternative of key_from is there. */
static enum route_guard
has_key(const struct conf_alternative *a, const struct request *request)
{
	enum route_guard guard = ROUTE_GUARDED;

	for (unsigned j = 0; j < a->n; j++) {
		if (!key_search_may_have(&a->part[j], request))
			return ROUTE_UNGUARDED;
		if (a->part[j].kind != CONF_FROM_HEADER)
			guard = ROUTE_BY_KEY;
	}
	return guard;
}

enum route_guard
route_guards(const struct conf_route *route, const struct request *request)
{
	enum route_guard guard = ROUTE_UNGUARDED, one;

	if (!takes_method(route, request->method))
		return ROUTE_UNGUARDED;
	switch (route->key) {
	case CONF_KEY_IGNORE:
		return ROUTE_UNGUARDED;
	case CONF_KEY_REQUIRED:
		return ROUTE_GUARDED;
	case CONF_KEY_OPTIONAL:
		break;
	}
	for (size_t i = 0; i < route->key_from.n; i++) {
		one = has_key(&route->key_from.item[i], request);
		if (one == ROUTE_GUARDED)
			return ROUTE_GUARDED;
		if (one == ROUTE_BY_KEY)
			guard = ROUTE_BY_KEY;
	}
	return guard;
}

uint64_t
route_body_limit(const struct conf *conf, const struct conf_route *route,
    const struct request *request)
{
	if (route_is_admin(conf, request->path))
		return strcmp(request->method, "POST") == 0 ? LIMIT_ADMIN_BODY
							    : 0;
	if (route_is_status(conf, request->path))
		return 0;
	return route_guards(route, request) == ROUTE_GUARDED
	    ? route->max_request_body
	    : LIMIT_SIZE;
}

/* --- the age of a request ------------------------------------------------ */

/*
 * A retry that comes after its key was deleted would run again.  If requests
 * carry a date that does not change from try to try, such a retry is refused
 * instead, provided that keys are kept for longer than requests may be old.  A
 * date far ahead would make a request immortal, so it may be no further ahead
 * than behind.
 */
enum age
route_age(
    const struct conf_route *route, const struct request *request, int64_t wall)
{
	char variable[264];
	int64_t sent;
	enum rc rc;

	if (route->max_request_age == 0)
		return AGE_GOOD;
	assert(route->request_timestamp != NULL);
	rc = cginame_variable(
	    route->request_timestamp, variable, sizeof(variable));
	assert(rc == RC_OK);
	switch (request_count(request, variable)) {
	case 0:
		return AGE_UNTOLD;
	case 1:
		break;
	default:
		return AGE_UNREADABLE;
	}
	if (!date_parse(request_param(request, variable), &sent))
		return AGE_UNREADABLE;
	if (wall - sent > route->max_request_age)
		return AGE_OLD;
	if (sent - wall > route->max_request_age)
		return AGE_AHEAD;
	return AGE_GOOD;
}

const char *
route_age_text(enum age age)
{
	static const char *const texts[] = { ROUTE_AGES(WORDS_WORD) };

	return texts[age];
}
