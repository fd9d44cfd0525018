/*
 * Request -> SHA-256 over its content: method, path, query string, media type
 * of the body, the fields that count, and the body.
 *
 * A fingerprint spec says how a fingerprint is made.  It is a text that is
 * stored with the key.  So a retry is compared in the way of the first request,
 * even if the configuration has changed since.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include <stdbool.h>

#include "conf_value.h"
#include "json.h"
#include "limit.h"
#include "request.h"

#define FINGERPRINT_LEN 32

/* Whether the body may count as JSON by that fingerprint spec. */
bool
fingerprint_needs_json(const struct request *req, const char *fingerprint_spec);

/*
 * Makes the fingerprint of a request by a spec.  key: the request's key; the
 * members of query and body that are the key do not count.  json: the body, or
 * NULL: it is not I-JSON, or not needed.
 *
 *	fingerprint_new(&fp, req, json, fingerprint_spec, key)
 *	while ((rc = fingerprint_next(fp)) == RC_PENDING)
 *		fingerprint_feed(fp, ...) the whole body, in any parts
 *	fingerprint_end(fp, out)		rc was RC_OK
 *	fingerprint_free(fp)			in any case
 *
 * Errors: RC_NOMEM, RC_IO (the body could not be read whole), or RC_VERSION:
 * this release does not know the spec.
 */
struct fingerprint;
enum rc fingerprint_new(struct fingerprint **out, const struct request *req,
    const struct json *json, const char *fingerprint_spec, const char *key);
enum rc fingerprint_next(struct fingerprint *fp);
enum rc fingerprint_feed(struct fingerprint *fp, const void *bytes, size_t n);
void
fingerprint_end(struct fingerprint *fp, unsigned char out[FINGERPRINT_LEN]);
void fingerprint_free(struct fingerprint *fp);

/* --- the spec ------------------------------------------------------------- */

struct fingerprint_spec {
	int version;
	enum conf_fingerprint how;
	struct conf_list headers, ignore;
	struct conf_key_from keys;

	/* private */
	char *header[LIMIT_CONF_LIST], *ignored[LIMIT_CONF_LIST];
	struct conf_alternative key[LIMIT_KEY_FROM];
	struct conf_arena arena;
};

/*
 * Makes the spec of a route, a few lines of text.  Routes that compare alike
 * have the same spec.  RC_OK, RC_LIMIT or RC_NOMEM.  out is cleared first, and
 * stays empty on failure.
 */
enum rc fingerprint_spec_write(const struct conf_route *route, struct buf *out);

/* RC_OK, RC_NOMEM, or RC_VERSION: this release does not know the text.  The
 * caller calls fingerprint_spec_free() in each case, and does not move the
 * struct. */
enum rc fingerprint_spec_read(const char *text, struct fingerprint_spec *spec);
void fingerprint_spec_free(struct fingerprint_spec *spec);

#endif
