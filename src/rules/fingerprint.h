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

/* The size of a field name's CGI variable; longer names are refused. */
#define FINGERPRINT_VARIABLE 1024

struct fingerprint_spec {
	int version;
	enum conf_fingerprint how;
	bool multipart; /* multipart bodies count by their parts */
	struct conf_list headers, ignore;
	struct conf_key_from keys;

	/* private */
	struct conf_alternative *key;
	struct conf_arena arena;
};

/*
 * Makes the spec of a route, a few lines of text.  Routes that compare alike
 * have the same spec.  RC_INVALID if an item holds a line feed or is empty,
 * RC_LIMIT (of out, or a field name too long) or RC_NOMEM.  out is cleared
 * first, and stays empty on failure.
 */
enum rc fingerprint_spec_write(const struct conf_route *route, struct buf *out);

/* RC_OK, RC_NOMEM, or RC_VERSION: this release does not know the text.  The
 * caller calls fingerprint_spec_free() in each case. */
enum rc fingerprint_spec_read(const char *text, struct fingerprint_spec *spec);
void fingerprint_spec_free(struct fingerprint_spec *spec);

#endif
