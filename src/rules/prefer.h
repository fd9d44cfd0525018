/*
 * What a client would rather have: the Prefer field, RFC 7240.
 */
#ifndef PREFER_H
#define PREFER_H

#include <stdbool.h>

#include "request.h"

/*
 * Whether it prefers an answer at once to the answer itself: respond-async
 * (section 4.1), without a value.  Of several preferences of one name the
 * first counts, and their parameters do not.  A field that is no list of
 * preferences asks for nothing.
 */
bool prefer_respond_async(const struct request *);

#endif
