/*
 * Names as CGI (RFC 3875) has them: the path of a request, and the variable of
 * a header field.
 */
#ifndef CGINAME_H
#define CGINAME_H

#include "buf.h"

/*
 * The path that routes and identities go by: SCRIPT_NAME + PATH_INFO, with
 * repeated slashes made one and "." and ".." segments resolved as the file
 * system would, so that no spelling of a path gets around its guard.  A
 * trailing slash stays.  Always begins with a slash.  Never REQUEST_URI.
 * Either may be NULL.  out is cleared first, and stays so on failure: RC_LIMIT
 * (the spelling is longer than out may be), RC_INVALID (PATH_INFO leads out of
 * SCRIPT_NAME, on its way at least) or RC_NOMEM.
 */
enum rc
cginame_path(const char *script_name, const char *path_info, struct buf *out);

/* A field name as its CGI variable: Content-Type -> CONTENT_TYPE,
 * Idempotency-Key -> HTTP_IDEMPOTENCY_KEY; all but letters and digits becomes
 * '_', as web servers do it.  RC_LIMIT if out is too small. */
enum rc cginame_variable(const char *field, char *out, size_t outsize);

#endif
