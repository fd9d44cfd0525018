/*
 * Path -> route.  conf_parse.c has sorted the routes, longest path first, so
 * that the first match is the longest prefix.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "limit.h"

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

bool
route_guards(const struct conf *conf, const struct conf_route *route,
    const struct request *request)
{
	if (!conf_list_has(&route->methods, request->method))
		return false;
	switch (route->key) {
	case CONF_KEY_IGNORE:
		return false;
	case CONF_KEY_REQUIRED:
		return true;
	case CONF_KEY_OPTIONAL:
		break;
	}
	return request_count(request, conf->key_variable) > 0;
}

uint64_t
route_body_limit(const struct conf *conf, const struct conf_route *route,
    const struct request *request)
{
	if (route_is_admin(conf, request->path) ||
	    route_is_status(conf, request->path))
		return 0;
	return route_guards(conf, route, request) ? route->max_request_body
						  : LIMIT_SIZE;
}
