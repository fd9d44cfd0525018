/*
 * Looks for the key of a request in the places that key_from names.
 *
 * The head is searched by key_search_init().  The body is searched only where
 * key_search_needs() says so:
 *
 *	KEY_NEEDS_FORM	key_search_form() reads the body
 *	KEY_NEEDS_JSON	key_search_json() gets the body as JSON
 *
 * The memory is bounded.
 */
#ifndef KEY_SEARCH_H
#define KEY_SEARCH_H

#include <stdbool.h>

#include "conf.h"
#include "form.h"
#include "json.h"
#include "key.h"
#include "request.h"

enum key_needs { KEY_NEEDS_NOTHING, KEY_NEEDS_FORM, KEY_NEEDS_JSON };

struct key_search {
	/* private */
	const struct conf_key_from *from;
	const unsigned char *secret;
	struct key_value value[2 * LIMIT_KEY_FROM]; /* one for each source */
	size_t n;
	enum form_kind kind; /* of the body */
	bool may_be_json;
	struct form form;
	struct buf field; /* the value of the current field */
	bool too_long;
};

/* RC_OK or RC_NOMEM; the caller calls key_search_free() in both cases.  from
 * and secret must outlive the search.  secret: the store's, for
 * sealed_is_form_key(); NULL: form keys are not checked. */
enum rc key_search_init(struct key_search *s, const struct conf_key_from *from,
    enum conf_key_syntax syntax, const struct request *rq,
    const unsigned char *secret);
void key_search_free(struct key_search *s);

/* Whether the body can have the key.  all: also where an earlier alternative
 * is there already. */
enum key_needs key_search_needs(const struct key_search *s, bool all);

/* RC_OK, RC_NOMEM, RC_IO. */
enum rc key_search_form(
    struct key_search *s, const struct request *rq, request_read_fn *read);

/* json: the body, or NULL: it is not I-JSON.  RC_OK or RC_NOMEM. */
enum rc key_search_json(struct key_search *s, const struct json *json);

/*
 * The key of the first alternative that is there; KEY_ABSENT: none is.
 * *source: where it is, or what is wrong; NULL if that is the whole key.  On
 * any verdict but KEY_OK, *out is empty.
 */
enum key_verdict
key_search_find(const struct key_search *s, const struct conf_route *route,
    struct key *out, const struct conf_source **source);

/* Whether the alternative of that index has that key. */
bool key_search_has(const struct key_search *s, size_t index, const char *key);

/* Whether a source may be in a request, as far as that is known without
 * looking into query, cookies and body. */
bool
key_search_may_have(const struct conf_source *source, const struct request *rq);

/* Whether the source can be in a body of the request's media type; true for a
 * source outside the body. */
bool
key_search_suits(const struct conf_source *source, const struct request *rq);

/* What a source is called: "form field", "header field", ... */
const char *key_search_kind(enum conf_source_kind kind);

#endif
