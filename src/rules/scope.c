/*
 * The scope of a request, as one text.
 *
 * Invariant: two requests get the same text only if the web server sent the
 * same values, one of each, in all variables of the scope (but for a collision
 * of HMAC-SHA-256).
 *
 * This file does not know which callers are allowed.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "scope.h"

static const char cookie[] = "cookie:";
#define COOKIE_LEN (sizeof(cookie) - 1)

_Static_assert(SCOPE_SECRET_LEN == DIGEST_LEN, "see digest_mac_for()");

static bool
is_credential(const char *name)
{
	return strcmp(name, "HTTP_AUTHORIZATION") == 0 ||
	    strcmp(name, "HTTP_COOKIE") == 0 ||
	    strncmp(name, cookie, COOKIE_LEN) == 0;
}

static enum rc
add_hmac(struct buf *out, const char *value, size_t value_len,
    const unsigned char secret[SCOPE_SECRET_LEN])
{
	unsigned char md[DIGEST_LEN];
	enum rc rc;

	rc = digest_mac(secret, SCOPE_SECRET_LEN, value, value_len, md);
	for (size_t i = 0; i < sizeof(md) && rc == RC_OK; i++)
		rc = buf_addf(out, "%02x", md[i]);
	return rc;
}

static enum rc
add_escaped(struct buf *out, const char *value)
{
	enum rc rc = RC_OK;
	size_t n;

	while (rc == RC_OK && *value != '\0') {
		n = strcspn(value, "|%");
		rc = buf_add(out, value, n);
		value += n;
		if (rc == RC_OK && *value != '\0')
			rc = buf_adds(out, *value++ == '|' ? "%7C" : "%25");
	}
	return rc;
}

/* Returns how often an item of the scope is there, and sets its value. */
static size_t
scope_find(const struct request *req, const char *item, const char **value,
    size_t *len)
{
	*value = NULL;
	*len = 0;
	if (strncmp(item, cookie, COOKIE_LEN) == 0)
		return request_cookie(req, item + COOKIE_LEN, value, len);
	*value = request_param(req, item);
	*len = *value != NULL ? strlen(*value) : 0;
	return request_count(req, item);
}

/* Returns the index of the first variable that came more than once;
 * variables->n: there is none. */
static size_t
find_twin(const struct request *req, const struct conf_list *variables)
{
	const char *value;
	size_t i, len;

	for (i = 0; i < variables->n; i++)
		if (scope_find(req, variables->item[i], &value, &len) > 1)
			break;
	return i;
}

const char *
scope_twin(const struct request *req, const struct conf_list *variables)
{
	size_t i = find_twin(req, variables);

	return i < variables->n ? variables->item[i] : NULL;
}

enum rc
scope_make(const struct request *req, const struct conf_list *variables,
    const unsigned char secret[SCOPE_SECRET_LEN], struct buf *out, bool *empty)
{
	const char *value;
	enum rc rc = RC_OK;
	size_t i, len;

	buf_clear(out);
	*empty = true;
	if (find_twin(req, variables) < variables->n)
		return RC_INVALID;
	for (i = 0; i < variables->n && rc == RC_OK; i++) {
		if (i > 0)
			rc = buf_addc(out, '|');
		(void)scope_find(req, variables->item[i], &value, &len);
		if (rc != RC_OK || value == NULL || len == 0)
			continue;
		*empty = false;
		if (is_credential(variables->item[i]))
			rc = add_hmac(out, value, len, secret);
		else if (variables->n == 1)
			rc = buf_adds(out, value);
		else
			rc = add_escaped(out, value);
	}
	if (rc != RC_OK)
		buf_clear(out);
	return rc;
}

void
scope_tag(const char *scope, char out[LOG_SCOPE_LEN + 1])
{
	unsigned char md[DIGEST_LEN];

	/* add_escaped() leaves a bar between variables only. */
	if (scope[strspn(scope, "|")] == '\0' ||
	    digest_of(scope, strlen(scope), md) != RC_OK) {
		memcpy(out, "-", 2);
		return;
	}
	for (size_t i = 0; i < LOG_SCOPE_LEN / 2; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", md[i]);
}
