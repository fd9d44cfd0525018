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

static enum key_verdict
search(const struct conf_route *route, const struct request *rq, size_t piece,
    struct key *key)
{
	const struct conf_source *source;
	struct key_search s;
	enum key_verdict verdict;
	struct json *json;
	size_t at, n;
	bool has = false;

	assert(key_search_init(
		   &s, &route->key_from, route->key_syntax, rq, NULL) == RC_OK);
	switch (key_search_needs(&s, false)) {
	case KEY_NEEDS_NOTHING:
		break;
	case KEY_NEEDS_FORM:
		for (at = 0; at < rq->body_len; at += n) {
			n = rq->body_len - at;
			if (n > piece)
				n = piece;
			assert(key_search_feed(&s, (const char *)rq->body + at,
				   n) == RC_OK);
		}
		assert(key_search_end(&s) == RC_OK);
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
    const char *key, size_t piece, unsigned char *out)
{
	struct json *json = NULL;
	struct fingerprint *fp;
	struct buf spec;
	size_t at, n;
	enum rc rc;

	buf_init(&spec, 10000);
	assert(fingerprint_spec_write(route, &spec) == RC_OK);
	if (fingerprint_needs_json(rq, spec.data))
		assert(
		    json_read(&json, rq->body, rq->body_len) != JSON_NO_MEMORY);
	assert(fingerprint_new(&fp, rq, json, spec.data, key) == RC_OK);
	while ((rc = fingerprint_next(fp)) == RC_PENDING) {
		for (at = 0; at < rq->body_len; at += n) {
			n = rq->body_len - at;
			if (n > piece)
				n = piece;
			assert(fingerprint_feed(fp, (const char *)rq->body + at,
				   n) == RC_OK);
		}
	}
	assert(rc == RC_OK);
	fingerprint_end(fp, out);
	fingerprint_free(fp);
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
	enum key_verdict verdict = search(route, rq, SIZE_MAX, &whole);

	assert(search(route, rq, 3, &cut) == verdict);
	assert(strcmp(whole.text, cut.text) == 0);
	if (verdict != KEY_OK)
		return;
	fingerprint(route, rq, whole.text, SIZE_MAX, one);
	fingerprint(route, rq, whole.text, 3, two);
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
