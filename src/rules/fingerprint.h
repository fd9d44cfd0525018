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

/* The first half of the digest.  128 bits tell apart what is honest, and no
 * request can be made to agree with one that stands.  A client that makes two
 * that agree, with 2^64 tries, gets for the second the answer to the first, and
 * both are its own.  In SQLite the length decides whether two rows or three fit
 * into a page. */
#define FINGERPRINT_LEN 16

/* Whether the body may count as JSON by that fingerprint spec. */
bool
fingerprint_needs_json(const struct request *req, const char *fingerprint_spec);

struct fingerprint_of {
	const struct request *req;
	/* The body, or NULL: it is not I-JSON, or not needed. */
	const struct json *json;
	/* The request's key.  The members of query and body that are the key do
	 * not count. */
	const char *key;
	request_read_fn *read;
};

/*
 * Makes the fingerprint of a request by a spec.  Errors: RC_NOMEM, RC_IO (the
 * body could not be read whole), or RC_VERSION: this release does not know the
 * spec.
 */
enum rc fingerprint_make(const struct fingerprint_of *of,
    const char *fingerprint_spec, unsigned char out[FINGERPRINT_LEN]);

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
