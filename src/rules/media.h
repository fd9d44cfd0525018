/*
 * Media types (RFC 9110, section 8.3.1).
 */
#ifndef MEDIA_H
#define MEDIA_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Appends the media type of a field's value: in lower case, without parameters
 * and outer blanks. */
enum rc media_type(const char *value, size_t len, struct buf *out);

/* Whether that is the media type of a field's value. */
bool media_is(const char *value, size_t len, const char *type);

/* Whether it is application/json or ends with "+json" (RFC 6839). */
bool media_is_json(const char *value);

/*
 * Finds a parameter of a field's value, a token or a quoted string, and appends
 * what it stands for.  RC_OK, RC_NOTFOUND, RC_INVALID (it comes twice, or a
 * quote is not closed) or what buf_add() returns.
 */
enum rc media_parameter(
    const char *value, size_t len, const char *name, struct buf *out);

#endif
