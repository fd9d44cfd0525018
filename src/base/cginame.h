/*
 * Names as CGI (RFC 3875) has them: the path of a request, and the CGI
 * variable of a header field.
 */
#ifndef CGINAME_H
#define CGINAME_H

#include "buf.h"

/*
 * Makes the path that routes and identities are compared by: SCRIPT_NAME +
 * PATH_INFO, never REQUEST_URI.  Repeated slashes become one; "." and ".."
 * segments are resolved as the file system would resolve them, so that no
 * spelling of a path gets around its guard.  A trailing slash stays.  The
 * result always begins with a slash.
 *
 * Either argument may be NULL.  out is cleared first, and stays empty on
 * failure: RC_LIMIT (the spelling is longer than the maximum of out),
 * RC_INVALID (PATH_INFO leads out of SCRIPT_NAME, even if it returns later) or
 * RC_NOMEM.
 */
enum rc
cginame_path(const char *script_name, const char *path_info, struct buf *out);

/* Makes the CGI variable of a field name: Content-Type -> CONTENT_TYPE,
 * Idempotency-Key -> HTTP_IDEMPOTENCY_KEY.  Each byte that is no letter or
 * digit becomes '_', as in web servers.  RC_LIMIT if out is too small. */
enum rc cginame_variable(const char *field, char *out, size_t outsize);

#endif
