/*
 * Request -> SHA-256 over what was asked: method, path, query string, media
 * type of the body, the fields that count, and the body, each length-framed.
 *
 * How it is made is a recipe, a text kept with the key, so that a retry is
 * compared in the way of the first request whatever was reconfigured since.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include "buf.h"
#include "conf.h"
#include "request.h"

#define FINGERPRINT_LEN 32

/*
 * The recipe of a route, a few lines of text.  Routes that compare alike have
 * the same one.  RC_INVALID if an item holds a line feed or is empty, RC_LIMIT
 * (of out, or a field name too long) or RC_NOMEM.  out is cleared first, and
 * stays so on failure.
 */
enum rc fingerprint_recipe(const struct conf_route *, struct buf *out);

/* Memory (bytes) that fingerprint_make() needs at most by that recipe, besides
 * some that does not depend on the body: at most LIMIT_JSON_MEMORY. */
size_t fingerprint_cost(const struct request *, const char *recipe);

/*
 * RC_OK, RC_NOMEM, RC_IO (the body could not be read), or RC_VERSION: a
 * recipe that this release does not know.
 */
enum rc fingerprint_make(const struct request *, const char *recipe,
    unsigned char out[FINGERPRINT_LEN]);

#endif
