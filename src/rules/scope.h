/*
 * The scope of a request: the values of the CGI variables that `scope` names,
 * as one text.
 *
 * An item of `scope` is a CGI variable, or cookie:NAME.
 * The value of a single variable is unchanged.  Several values are joined by
 * '|', with '|' and '%' in them percent-encoded, so that two callers never
 * share a scope.  Values of credentials (cgienv.h) and of cookies appear only
 * as HMAC-SHA-256 under the store's secret, 64 hexadecimal digits.
 */
#ifndef SCOPE_H
#define SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "conf.h"
#include "request.h"
#include "sealed.h"

/*
 * Makes the scope.  RC_OK, RC_INVALID (scope_repeated() is not NULL), RC_LIMIT
 * (values too long) or RC_NOMEM.  *empty: no variable had a value.  out is
 * cleared first, and stays empty on failure.
 */
enum rc scope_make(const struct request *req, const struct conf_list *variables,
    const unsigned char secret[SCOPE_SECRET_LEN], struct buf *out, bool *empty);

/*
 * Makes the name of a scope in the log: the first 8 hexadecimal digits of its
 * SHA-256, and "-" for the empty scope, of however many variables.
 */
void scope_tag(const char *scope, char out[LOG_SCOPE_LEN + 1]);

/*
 * Finds the first of the variables that came more than once, or NULL.  It is
 * not known which of its values the web server has verified: one may come from
 * a client's field with another spelling (X.User beside X-User).
 */
const char *
scope_repeated(const struct request *req, const struct conf_list *variables);

/* --- the caller ------------------------------------------------------- */

/*
 * The caller of a request: whom limits count it for, so that no client can
 * close a route for others.  The caller is the scope; where that is empty, it
 * is the client's address (REMOTE_ADDR): an IPv4 address, also one within IPv6,
 * or the first 64 bits of an IPv6 address.  All clients whose address the web
 * server does not know, as those of a unix socket, are one caller.
 */

/* The lower bits of a number are the route's. */
#define CALLER_ROUTE_BITS 22

#define CALLER_NAME_LEN   48
#define CALLER_COOKIE_LEN 16

/*
 * Makes the number of a caller on a route: 40 bits of the caller and 22 of the
 * route's path, both of HMAC-SHA-256 under the store's secret.  Thus the
 * numbers of one caller are neighbours.  address may be NULL.
 */
int64_t scope_caller_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *scope, const char *address, const char *route);

/* The caller's name for people: "1f2e3d4c" of a scope (see scope_tag()),
 * "192.0.2.7", "2001:db8:0:1::/64", or "-". */
void scope_caller_name(
    const char *scope, const char *address, char out[CALLER_NAME_LEN + 1]);

/* The first bytes of HMAC-SHA-256 of a Cookie field. */
void scope_caller_cookie(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *cookie, unsigned char out[CALLER_COOKIE_LEN]);

#endif
