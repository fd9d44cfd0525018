/*
 * Query strings (application/x-www-form-urlencoded).
 */
#ifndef QUERY_H
#define QUERY_H

#include <stddef.h>

#include "buf.h"

/* Appends a query string to out without the parameters of n names; the others
 * stay as they are.  RC_OK, RC_LIMIT (of out) or RC_NOMEM. */
enum rc query_without(
    const char *query, const char *const *name, size_t n, struct buf *out);

#endif
