/*
 * A token is the time when it was made, in hexadecimal, and an HMAC-SHA-256 of
 * that time and of all that the token is bound to.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "digest.h"
#include "page_token.h"

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: token of the operator's page\n";

static enum rc
digest_bound(
    const struct page_token *t, int64_t made, unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_text(&d, t->user);
	digest_text(&d, t->host);
	digest_text(&d, t->act);
	digest_text(&d, t->state);
	digest_count(&d, (uint64_t)t->id);
	digest_count(&d, (uint64_t)t->life);
	digest_count(&d, (uint64_t)t->changed);
	digest_count(&d, (uint64_t)made);
	return digest_end(&d, out);
}

enum rc
page_token_make(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    char out[PAGE_TOKEN_SIZE])
{
	unsigned char digest[DIGEST_LEN], mac[DIGEST_LEN];
	int n;
	enum rc rc;

	rc = digest_bound(t, now, digest);
	if (rc == RC_OK)
		rc = digest_mac_for(
		    secret, purpose, digest, sizeof(digest), mac);
	if (rc != RC_OK)
		return rc;
	n = snprintf(out, PAGE_TOKEN_SIZE, "%" PRIx64 "-", (uint64_t)now);
	for (size_t i = 0; i < sizeof(mac); i++)
		n += snprintf(
		    out + n, PAGE_TOKEN_SIZE - (size_t)n, "%02x", mac[i]);
	return RC_OK;
}

bool
page_token_is_good(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now, const char *text)
{
	char own[PAGE_TOKEN_SIZE], *end;
	const size_t len = strlen(text);
	int64_t made;

	errno = 0;
	made = strtoll(text, &end, 16);
	if (errno != 0 || *end != '-' || made > now ||
	    made < now - PAGE_TOKEN_AGE)
		return false;
	if (page_token_make(t, secret, made, own) != RC_OK)
		return false;
	return len == strlen(own) && CRYPTO_memcmp(own, text, len) == 0;
}
