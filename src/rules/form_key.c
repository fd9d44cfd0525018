/*
 * Another site can put a key of its own choice into a form that a browser sends
 * here.  So a key from a form must be one that was given.
 */
#include "config.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "form_key.h"

/* "xxxxxxxx-xxxx-8xxx-" and "yxxx-xxxxxxxxxxxx". */
#define HEAD  19
#define TAIL  (FORM_KEY_LEN - HEAD)
#define DIGIT 14 /* the index of the version */

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: form key\n";

enum rc
form_key_sign(
    const unsigned char secret[SCOPE_SECRET_LEN], char uuid[FORM_KEY_LEN + 1])
{
	unsigned char md[DIGEST_LEN];
	uint64_t mac;
	enum rc rc;

	uuid[DIGIT] = '8';
	rc = digest_mac_for(secret, purpose, uuid, HEAD, md);
	if (rc != RC_OK)
		return rc;
	memcpy(&mac, md, sizeof(mac));
	/* The two bits of the variant are 10. */
	mac = (mac >> 2) | UINT64_C(1) << 63;
	snprintf(uuid + HEAD, TAIL + 1, "%04" PRIx64 "-%012" PRIx64, mac >> 48,
	    mac & UINT64_C(0xffffffffffff));
	return RC_OK;
}

enum rc
form_key_check(
    const unsigned char secret[SCOPE_SECRET_LEN], const char *text, bool *good)
{
	char own[FORM_KEY_LEN + 1];
	enum rc rc;

	*good = false;
	if (strlen(text) != FORM_KEY_LEN)
		return RC_OK;
	memcpy(own, text, sizeof(own));
	rc = form_key_sign(secret, own);
	*good = rc == RC_OK && CRYPTO_memcmp(own, text, FORM_KEY_LEN) == 0;
	return rc;
}

bool
form_key_is_source(const struct conf_source *source)
{
	return (source->kind == CONF_FROM_FORM ||
		   source->kind == CONF_FROM_QUERY) &&
	    strcmp(source->name, "once_key") == 0;
}
