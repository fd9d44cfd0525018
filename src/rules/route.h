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
const struct conf_route *route_find(const struct conf *conf, const char *path);

/* Whether a path belongs to oncewrap itself, and never to a handler: below
 * admin_path, or below status_path. */
bool route_is_admin(const struct conf *conf, const char *path);
bool route_is_status(const struct conf *conf, const char *path);

enum route_guard {
	ROUTE_UNGUARDED,
	ROUTE_GUARDED,
	ROUTE_BY_KEY /* guarded if the key is there: key_search.h finds out */
};

/* Whether a request is guarded: its method is in methods, key is not ignore,
 * and it brings a key or needs one.  Looks at names only. */
enum route_guard
route_guards(const struct conf_route *route, const struct request *request);

/* The longest request body allowed (bytes): LIMIT_SIZE if the request is not
 * or perhaps not guarded, 0 if it is for oncewrap itself. */
uint64_t route_body_limit(const struct conf *conf,
    const struct conf_route *route, const struct request *request);

/* What is wrong with the field of the age, for the client: the end of a
 * sentence that begins with the name of the field.  AGE_GOOD: nothing is, or
 * the route has no limit.  AGE_AHEAD: further ahead than the oldest may be
 * behind. */
/* clang-format off */
#define ROUTE_AGES(X) \
	X(AGE_GOOD, NULL) \
	X(AGE_UNTOLD, "is missing: it has to say when the request was made") \
	X(AGE_UNREADABLE, "is not one IMF-fixdate or RFC 3339 date") \
	X(AGE_OLD, "is older than max_request_age allows") \
	X(AGE_AHEAD, "is further ahead than max_request_age allows")
/* clang-format on */
enum age { ROUTE_AGES(WORDS_ENUMERATOR) };

/* Judges the age that a request claims, by the route's request_timestamp and
 * max_request_age.  wall is the clock's reading (ms). */
enum age route_age(const struct conf_route *route,
    const struct request *request, int64_t wall);

/* The text; NULL: AGE_GOOD. */
const char *route_age_text(enum age age);

#endif
