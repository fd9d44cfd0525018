/*
 * The scope of a request: the values of the CGI variables that `scope` names,
 * as one text.
 *
 * An item of `scope` is a CGI variable, or cookie:NAME.
 * The value of a single variable is unchanged.  Several values are joined by
 * '|', with '|' and '%' in them percent-encoded, so that two callers never
 * share a scope.  Values of HTTP_AUTHORIZATION and of cookies appear only as
 * HMAC-SHA-256 under the store's secret, 64 hexadecimal digits.
 */
#ifndef SCOPE_H
#define SCOPE_H

#include <stdbool.h>

#include "buf.h"
#include "conf.h"
#include "request.h"

#define SCOPE_SECRET_LEN 32

/*
 * Makes the scope.  RC_OK, RC_INVALID (scope_twin() is not NULL), RC_LIMIT
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
scope_twin(const struct request *req, const struct conf_list *variables);

#endif
