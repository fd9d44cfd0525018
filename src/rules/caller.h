/*
 * The caller of a request: whom limits count it for, so that no client can
 * close a route for others.  The caller is the scope; where that is empty, it
 * is the client's address (REMOTE_ADDR): an IPv4 address, also one within IPv6,
 * or the first 64 bits of an IPv6 address.  All clients whose address the web
 * server does not know, as those of a unix socket, are one caller.
 */
#ifndef CALLER_H
#define CALLER_H

#include <stdint.h>

#include "request.h"
#include "scope.h"

/* The lower bits of a number are the route's. */
#define CALLER_ROUTE_BITS 22

#define CALLER_NAME_LEN   48
#define CALLER_COOKIE_LEN 16

/*
 * Makes the number of a caller on a route: 40 bits of the caller and 22 of the
 * route's path, both of HMAC-SHA-256 under the store's secret.  Thus the
 * numbers of one caller are neighbours.  address may be NULL.  RC_OK or
 * RC_NOMEM.
 */
enum rc caller_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *scope, const char *address, const char *route, int64_t *number);

/* The caller's name for people: "1f2e3d4c" of a scope (see scope_tag()),
 * "192.0.2.7", "2001:db8:0:1::/64", or "-". */
void caller_name(
    const char *scope, const char *address, char out[CALLER_NAME_LEN + 1]);

/* The first bytes of HMAC-SHA-256 of a Cookie field.  RC_OK or RC_NOMEM. */
enum rc caller_cookie(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *cookie, unsigned char out[CALLER_COOKIE_LEN]);

#endif
