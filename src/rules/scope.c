/*
 * The scope of a request, as one text, and its caller.
 *
 * Invariant: two requests get the same text only if the web server sent the
 * same values, one of each, in all variables of the scope (but for a collision
 * of HMAC-SHA-256).
 *
 * This file does not know which callers are allowed.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cgienv.h"
#include "digest.h"
#include "scope.h"

static const char by_cookie[] = "cookie:";
#define COOKIE_LEN (sizeof(by_cookie) - 1)

_Static_assert(SCOPE_SECRET_LEN == DIGEST_LEN, "see digest_mac_for()");

static bool
is_credential(const char *name)
{
	return cgienv_is_credential(name) ||
	    strncmp(name, by_cookie, COOKIE_LEN) == 0;
}

static void
add_hmac(struct buf *out, const char *value, size_t value_len,
    const unsigned char secret[SCOPE_SECRET_LEN])
{
	unsigned char md[DIGEST_LEN];

	digest_mac_for(secret, "", value, value_len, md);
	for (size_t i = 0; i < sizeof(md); i++)
		buf_addf(out, "%02x", md[i]);
}

static void
add_escaped(struct buf *out, const char *value)
{
	for (; *value != '\0'; value++)
		if (*value == '|' || *value == '%')
			buf_addf(out, "%%%02X", *value);
		else
			buf_addc(out, *value);
}

/* Returns how often an item of the scope is there, and sets its value. */
static size_t
scope_find(const struct request *req, const char *item, const char **value,
    size_t *len)
{
	*value = NULL;
	*len = 0;
	if (strncmp(item, by_cookie, COOKIE_LEN) == 0)
		return request_cookie(req, item + COOKIE_LEN, value, len);
	*value = request_param(req, item);
	*len = *value != NULL ? strlen(*value) : 0;
	return request_count(req, item);
}

const char *
scope_repeated(const struct request *req, const struct conf_list *variables)
{
	const char *value;
	size_t len;

	for (size_t i = 0; i < variables->n; i++)
		if (scope_find(req, variables->item[i], &value, &len) > 1)
			return variables->item[i];
	return NULL;
}

enum rc
scope_make(const struct request *req, const struct conf_list *variables,
    const unsigned char secret[SCOPE_SECRET_LEN], struct buf *out, bool *empty)
{
	const char *value;
	enum rc rc;
	size_t i, len;

	buf_clear(out);
	*empty = true;
	if (scope_repeated(req, variables) != NULL)
		return RC_INVALID;
	for (i = 0; i < variables->n; i++) {
		if (i > 0)
			buf_addc(out, '|');
		(void)scope_find(req, variables->item[i], &value, &len);
		if (value == NULL || len == 0)
			continue;
		*empty = false;
		if (is_credential(variables->item[i]))
			add_hmac(out, value, len, secret);
		else if (variables->n == 1)
			buf_adds(out, value);
		else
			add_escaped(out, value);
	}
	if ((rc = out->rc) != RC_OK)
		buf_clear(out);
	return rc;
}

/* Whether the scope names a caller.  add_escaped() leaves a bar between
 * variables only. */
static bool
has_name(const char *scope)
{
	return scope[strspn(scope, "|")] != '\0';
}

void
scope_tag(const char *scope, char out[LOG_SCOPE_LEN + 1])
{
	unsigned char md[DIGEST_LEN];

	if (!has_name(scope)) {
		memcpy(out, "-", 2);
		return;
	}
	digest_of(scope, strlen(scope), md);
	for (size_t i = 0; i < LOG_SCOPE_LEN / 2; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", md[i]);
}

/* --- the caller ------------------------------------------------------- */

#define NETWORK 8 /* bytes of an IPv6 address that name a caller */

/* The bytes of the address that name the caller: 4, or NETWORK; 0: there is no
 * address. */
static size_t
read_address(const char *address, unsigned char out[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];
	size_t n;

	if (address == NULL)
		return 0;
	if (inet_pton(AF_INET, address, out) == 1)
		return 4;
	n = strcspn(address, "%"); /* what follows is an interface */
	if (n >= sizeof(text))
		return 0;
	memcpy(text, address, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, out) != 1)
		return 0;
	if (memcmp(out, mapped, sizeof(mapped)) != 0)
		return NETWORK;
	memmove(out, out + sizeof(mapped), 4);
	return 4;
}

/* The first bytes of the HMAC of a purpose and of bytes. */
static void
scope_hmac(const unsigned char *secret, const char *purpose, const void *bytes,
    size_t n, unsigned char out[DIGEST_LEN])
{
	unsigned char digest[DIGEST_LEN];

	digest_of(bytes, n, digest);
	digest_mac_for(secret, purpose, digest, sizeof(digest), out);
}

/* The low byte first, so that a store can be moved to another machine. */
static int64_t
low_bits(const unsigned char *bytes, unsigned bits)
{
	uint64_t number = 0;

	for (int i = 8; i-- > 0;)
		number = number << 8 | bytes[i];
	return (int64_t)(number & ((UINT64_C(1) << bits) - 1));
}

int64_t
scope_caller_number(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *scope, const char *address, const char *route)
{
	unsigned char of_caller[DIGEST_LEN], of_route[DIGEST_LEN], bytes[16];
	size_t n;

	if (has_name(scope)) {
		scope_hmac(secret, "oncewrap: caller by scope\n", scope,
		    strlen(scope), of_caller);
	} else {
		n = read_address(address, bytes);
		scope_hmac(secret, "oncewrap: caller by address\n", bytes, n,
		    of_caller);
	}
	scope_hmac(secret, "oncewrap: route of a caller\n", route,
	    strlen(route), of_route);
	return low_bits(of_caller, 62 - CALLER_ROUTE_BITS)
	    << CALLER_ROUTE_BITS |
	    low_bits(of_route, CALLER_ROUTE_BITS);
}

void
scope_caller_name(
    const char *scope, const char *address, char out[CALLER_NAME_LEN + 1])
{
	unsigned char bytes[16];
	size_t n;

	if (has_name(scope)) {
		scope_tag(scope, out);
		return;
	}
	n = read_address(address, bytes);
	if (n == NETWORK)
		memset(bytes + NETWORK, 0, sizeof(bytes) - NETWORK);
	if (n == 0 ||
	    inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, out,
		CALLER_NAME_LEN + 1) == NULL)
		memcpy(out, "-", 2);
	else if (n == NETWORK)
		(void)snprintf(out + strlen(out),
		    CALLER_NAME_LEN + 1 - strlen(out), "/64");
}

void
scope_caller_cookie(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *cookie, unsigned char out[CALLER_COOKIE_LEN])
{
	unsigned char md[DIGEST_LEN];

	scope_hmac(secret, "oncewrap: cookie of a caller\n", cookie,
	    strlen(cookie), md);
	memcpy(out, md, CALLER_COOKIE_LEN);
}
