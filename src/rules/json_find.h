/*
 * The key that a JSON Pointer (RFC 6901) names in a JSON text.
 */
#ifndef JSON_FIND_H
#define JSON_FIND_H

#include "json.h"

enum json_found {
	JSON_ABSENT, /* the pointer leads nowhere */
	JSON_FOUND,
	JSON_NO_KEY,  /* it leads to neither a string nor an integer */
	JSON_TOO_LONG /* an integer longer than out may become */
};

/*
 * Appends a string as it is, or an integer in its decimal form (1, 1.0 and
 * 10e-1 are the integer 1).
 */
enum json_found json_find(
    const struct json *json, const char *pointer, struct buf *out, enum rc *rc);

#endif
