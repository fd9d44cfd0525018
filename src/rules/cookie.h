/*
 * The cookies of a request (RFC 6265, section 4.2.1).
 */
#ifndef COOKIE_H
#define COOKIE_H

#include "request.h"

/*
 * Returns how often a cookie is there, and sets the value of the first one, as
 * it was sent.  A request with two HTTP_COOKIE variables counts as having it
 * twice: the handler sees only one of the two.
 */
size_t cookie_find(const struct request *req, const char *name,
    const char **value, size_t *len);

#endif
