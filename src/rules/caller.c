/*
 * See caller.h.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "caller.h"

#define NETWORK 8 /* bytes of an IPv6 address that name a caller */

/* Whether the scope names a caller; see scope_tag(). */
static bool
has_name(const char *scope)
{
	return scope[strspn(scope, "|")] != '\0';
}

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
static enum rc
hmac(const unsigned char *secret, const char *purpose, const void *bytes,
    size_t n, unsigned char out[DIGEST_LEN])
{
	unsigned char digest[DIGEST_LEN];
	enum rc rc = digest_of(bytes, n, digest);

	if (rc != RC_OK)
		return rc;
	return digest_mac_for(secret, purpose, digest, sizeof(digest), out);
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

enum rc
caller_number(const unsigned char secret[SCOPE_SECRET_LEN], const char *scope,
    const char *address, const char *route, int64_t *number)
{
	unsigned char of_caller[DIGEST_LEN], of_route[DIGEST_LEN], bytes[16];
	size_t n;
	enum rc rc;

	if (has_name(scope)) {
		rc = hmac(secret, "oncewrap: caller by scope\n", scope,
		    strlen(scope), of_caller);
	} else {
		n = read_address(address, bytes);
		rc = hmac(secret, "oncewrap: caller by address\n", bytes, n,
		    of_caller);
	}
	if (rc == RC_OK)
		rc = hmac(secret, "oncewrap: route of a caller\n", route,
		    strlen(route), of_route);
	if (rc == RC_OK)
		*number = low_bits(of_caller, 62 - CALLER_ROUTE_BITS)
			<< CALLER_ROUTE_BITS |
		    low_bits(of_route, CALLER_ROUTE_BITS);
	return rc;
}

void
caller_name(
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

enum rc
caller_cookie(const unsigned char secret[SCOPE_SECRET_LEN], const char *cookie,
    unsigned char out[CALLER_COOKIE_LEN])
{
	unsigned char md[DIGEST_LEN];
	enum rc rc;

	rc = hmac(secret, "oncewrap: cookie of a caller\n", cookie,
	    strlen(cookie), md);
	if (rc == RC_OK)
		memcpy(out, md, CALLER_COOKIE_LEN);
	return rc;
}
