/*
 * Any bytes as query, cookies and body of a request.  The first line is the
 * CONTENT_TYPE, the second the query, the third HTTP_COOKIE, the rest the
 * body.  A key that is found
 *
 *  -	is UTF-8 without control characters, within the limits,
 *  -	is the one that its alternative has,
 *  -	does not depend on how the body is cut into pieces,
 *
 * and the fingerprint of the request does not either.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fingerprint.h"
#include "key_search.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static const char text[] =
    "[defaults]\nkey_from = cookie:a query:k form:k+query:l form:k json:/k/0 "
    "json:/id\n";

/* How much of a body is read at a time. */
static size_t piece;

static enum rc
read_body(const struct request *rq, request_take_fn *take, void *arg)
{
	enum rc rc = RC_OK;
	size_t at, n;

	for (at = 0; rc == RC_OK && at < rq->body_len; at += n) {
		n = rq->body_len - at;
		if (n > piece)
			n = piece;
		rc = take(arg, (const char *)rq->body + at, n);
	}
	return rc;
}

static enum key_verdict
search(
    const struct conf_route *route, const struct request *rq, struct key *key)
{
	const struct conf_source *source;
	struct key_search s;
	enum key_verdict verdict;
	struct json *json;
	size_t n;
	bool has = false;

	assert(key_search_init(
		   &s, &route->key_from, route->key_syntax, rq, NULL) == RC_OK);
	switch (key_search_needs(&s, false)) {
	case KEY_NEEDS_NOTHING:
		break;
	case KEY_NEEDS_FORM:
		assert(key_search_form(&s, rq, read_body) == RC_OK);
		break;
	case KEY_NEEDS_JSON:
		assert(
		    json_read(&json, rq->body, rq->body_len) != JSON_NO_MEMORY);
		assert(key_search_json(&s, json) == RC_OK);
		json_free(json);
		break;
	}
	verdict = key_search_find(&s, route, key, &source);
	for (n = 0; n < route->key_from.n; n++)
		has = has || key_search_has(&s, n, key->text);
	if (verdict == KEY_OK) {
		assert(has && key->len <= route->key_max_length);
		assert(key_check_text(key->text, key->len) == KEY_OK);
	} else {
		assert(key->len == 0);
		assert(*key_verdict_text(verdict) != '\0');
	}
	key_search_free(&s);
	return verdict;
}

static void
fingerprint(const struct conf_route *route, const struct request *rq,
    const char *key, unsigned char *out)
{
	struct fingerprint_of of = { .req = rq, .key = key, .read = read_body };
	struct json *json = NULL;
	struct buf spec;

	buf_init(&spec, 10000);
	assert(fingerprint_spec_write(route, &spec) == RC_OK);
	if (fingerprint_needs_json(rq, spec.data))
		assert(
		    json_read(&json, rq->body, rq->body_len) != JSON_NO_MEMORY);
	of.json = json;
	assert(fingerprint_make(&of, spec.data, out) == RC_OK);
	json_free(json);
	buf_free(&spec);
}

/* Cuts the next line off; NULL: there is none. */
static char *
line(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size > 0 ? memchr(*data, '\n', *size) : NULL;
	char *copy;

	if (end == NULL)
		return NULL;
	/* strndup() may look behind the end in a checked build. */
	if ((copy = malloc((size_t)(end + 1 - *data))) != NULL) {
		memcpy(copy, *data, (size_t)(end - *data));
		copy[end - *data] = '\0';
	}
	*size -= (size_t)(end + 1 - *data);
	*data = end + 1;
	return copy;
}

static void
check(const struct conf_route *route, const struct request *rq)
{
	unsigned char one[FINGERPRINT_LEN], two[FINGERPRINT_LEN];
	struct key whole, cut;
	enum key_verdict verdict;

	piece = SIZE_MAX;
	verdict = search(route, rq, &whole);
	piece = 3;
	assert(search(route, rq, &cut) == verdict);
	assert(strcmp(whole.text, cut.text) == 0);
	if (verdict != KEY_OK)
		return;
	fingerprint(route, rq, whole.text, two);
	piece = SIZE_MAX;
	fingerprint(route, rq, whole.text, one);
	assert(memcmp(one, two, sizeof(one)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf *conf;
	struct conf_error err;
	char *type = line(&data, &size), *query = line(&data, &size);
	char *cookie = line(&data, &size);
	const struct param params[] = { { "CONTENT_TYPE", type },
		{ "HTTP_COOKIE", cookie } };
	const struct request rq = { .params = params,
		.nparams = 2,
		.method = "POST",
		.path = "/",
		.query = query,
		.body = size > 0 ? data : NULL,
		.body_len = size,
		.body_fd = -1 };

	if (conf == NULL)
		conf = conf_parse("f", text, sizeof(text) - 1, &err);
	assert(conf != NULL);
	if (cookie != NULL)
		check(&conf->defaults, &rq);
	free(type);
	free(query);
	free(cookie);
	return 0;
}
