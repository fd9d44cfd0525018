/*
 * Path -> route.  The route with the longest path prefix wins, by whole
 * segments.  Where none matches, only the defaults apply.
 */
#ifndef ROUTE_H
#define ROUTE_H

#include <stdbool.h>

#include "conf.h"
#include "request.h"

/* Finds the route.  Never NULL; it lives as long as the configuration. */
const struct conf_route *route_find(const struct conf *, const char *path);

/* Whether a path belongs to oncewrap itself, and never to a handler: below
 * admin_path, or below status_path. */
bool route_is_admin(const struct conf *, const char *path);
bool route_is_status(const struct conf *, const char *path);

/*
 * Whether a request is guarded: its method is in methods, key is not ignore,
 * and it brings a key field or needs one.
 */
bool route_guards(
    const struct conf *, const struct conf_route *, const struct request *);

/* The longest request body allowed (bytes): LIMIT_SIZE if the request is not
 * guarded, 0 if it is for oncewrap itself. */
uint64_t route_body_limit(
    const struct conf *, const struct conf_route *, const struct request *);

#endif
