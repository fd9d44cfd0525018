/*
 * The preferences of a client: the Prefer field, RFC 7240, and the Accept
 * field, RFC 9110, section 12.5.1.
 */
#ifndef PREFER_H
#define PREFER_H

#include <stdbool.h>

#include "request.h"

/*
 * Whether the client prefers an immediate response to the final one:
 * respond-async (section 4.1), without a value.  Of several preferences of one
 * name the first counts; their parameters are ignored.  A field that is no
 * list of preferences is ignored.
 */
bool prefer_respond_async(const struct request *request);

/*
 * Whether the client prefers text/html to JSON: to both application/json and
 * application/problem+json.  A client that has no preference, or no Accept
 * field, does not; nor does one whose field is malformed.
 */
bool prefer_html(const struct request *request);

#endif
