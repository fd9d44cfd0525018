/*
 * Who asks: the values of the CGI variables that `scope` names, as one text.
 *
 * One variable: its value as it is.  Several: joined by '|', with '|' and '%'
 * in the values percent-encoded, so that two callers never share a scope.
 * Values of HTTP_AUTHORIZATION and HTTP_COOKIE appear only as HMAC-SHA-256
 * under the store's secret, 64 hexadecimal digits.
 */
#ifndef SCOPE_H
#define SCOPE_H

#include <stdbool.h>

#include "buf.h"
#include "conf.h"
#include "request.h"

#define SCOPE_SECRET_LEN 32

/*
 * RC_OK, RC_INVALID (scope_twin() is not NULL), RC_LIMIT (values too long) or
 * RC_NOMEM.  *empty says that no variable had a value.  out is cleared first,
 * and stays so on failure.
 */
enum rc scope_make(const struct request *, const struct conf_list *variables,
    const unsigned char secret[SCOPE_SECRET_LEN], struct buf *out, bool *empty);

/*
 * The first of the variables that came more than once, or NULL.  Then it is not
 * known which value the web server has verified: one may be a client's, whose
 * field has another spelling (X.User beside X-User).
 */
const char *
scope_twin(const struct request *, const struct conf_list *variables);

#endif
