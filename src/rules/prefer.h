/*
 * The preferences of a client: the Prefer field, RFC 7240, and the Accept and
 * Accept-Language fields, RFC 9110, sections 12.5.1 and 12.5.4.
 */
#ifndef PREFER_H
#define PREFER_H

#include <stdbool.h>

#include "request.h"

/*
 * Whether the client prefers an immediate response to the final one:
 * respond-async (section 4.1), without a value.  Of several preferences of one
 * name the first counts; their parameters are ignored.
 */
bool prefer_respond_async(const struct request *request);

/*
 * Whether the client prefers text/html to JSON: to both application/json and
 * application/problem+json.  A client that has no preference, or no Accept
 * field, does not.  A range that is malformed says nothing; with a weight that
 * is none the whole field says nothing.
 */
bool prefer_html(const struct request *request);

/*
 * The languages that the client accepts, the most wanted first.  Tags are in
 * lower case, and have only letters, digits and hyphens.  Languages above
 * PREFER_LANGUAGES, longer tags, the range * and what is malformed are left
 * out.
 */
#define PREFER_LANGUAGES 8
#define PREFER_TAG_LEN   35 /* RFC 5646, section 4.4.1 */

struct prefer_languages {
	size_t n;
	struct prefer_language {
		char tag[PREFER_TAG_LEN + 1];
		unsigned weight;
	} item[PREFER_LANGUAGES];
};

void prefer_languages(
    const struct request *request, struct prefer_languages *languages);

#endif
