/*
 * Media types (RFC 9110, section 8.3.1).
 */
#ifndef MEDIA_H
#define MEDIA_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "request.h"

/* Appends the media type of a field's value: in lower case, without parameters
 * and outer blanks.  value may be NULL. */
enum rc media_type(const char *value, size_t len, struct buf *out);

/* The same of a request's body. */
enum rc media_type_of(const struct request *req, struct buf *out);

/* Whether the media type of a field's value is type, in lower case. */
bool media_is(const char *value, const char *type);

/* Whether it is application/json or ends with "+json" (RFC 6839). */
bool media_is_json(const char *type);

/*
 * Finds a parameter of a field's value, a token or a quoted string, and appends
 * what it stands for.  RC_OK, RC_NOTFOUND, RC_INVALID (it comes twice, or a
 * quote is not closed) or what buf_add() returns.
 */
enum rc media_parameter(
    const char *value, size_t len, const char *name, struct buf *out);

#endif
