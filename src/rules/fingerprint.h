/*
 * Request -> SHA-256 over its content: method, path, query string, media type
 * of the body, the fields that count, and the body.  Each part is preceded by
 * its length.
 *
 * A recipe says how a fingerprint is made.  It is a text that is stored with
 * the key.  So a retry is compared in the way of the first request, even if
 * the configuration has changed since.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include "buf.h"
#include "conf.h"
#include "request.h"

#define FINGERPRINT_LEN 32

/*
 * Makes the recipe of a route, a few lines of text.  Routes that compare alike
 * have the same recipe.  RC_INVALID if an item holds a line feed or is empty,
 * RC_LIMIT (of out, or a field name too long) or RC_NOMEM.  out is cleared
 * first, and stays empty on failure.
 */
enum rc fingerprint_recipe(const struct conf_route *, struct buf *out);

/* The most memory (bytes) that fingerprint_make() needs for the body by that
 * recipe: at most LIMIT_JSON_MEMORY. */
size_t fingerprint_cost(const struct request *, const char *recipe);

/*
 * Makes the fingerprint by a recipe.  RC_OK, RC_NOMEM, RC_IO (the body could
 * not be read), or RC_VERSION: this release does not know the recipe.
 */
enum rc fingerprint_make(const struct request *, const char *recipe,
    unsigned char out[FINGERPRINT_LEN]);

#endif
