/*
 * The number is masked with an HMAC-SHA-256 of all that stands before it, so
 * equal or neighbouring numbers show no likeness.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "downstream.h"

/* "xxxxxxxx-xxxx-4xxx-yxxx-" and twelve digits of 48 bits. */
#define HEAD   24
#define DIGITS (RECORD_UUID_LEN - HEAD)
#define MASK   ((UINT64_C(1) << 48) - 1)

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char purpose[] = "oncewrap: downstream key\n";

static enum rc
downstream_mask(const unsigned char *secret, const char *uuid, uint64_t *mask)
{
	unsigned char md[DIGEST_LEN];
	enum rc rc = digest_mac_for(secret, purpose, uuid, HEAD, md);

	if (rc != RC_OK)
		return rc;
	memcpy(mask, md, sizeof(*mask));
	*mask &= MASK;
	return RC_OK;
}

enum rc
downstream_bind(const unsigned char secret[SCOPE_SECRET_LEN], int64_t id,
    char uuid[RECORD_UUID_LEN + 1])
{
	uint64_t mask;
	enum rc rc = downstream_mask(secret, uuid, &mask);

	if (rc == RC_OK)
		snprintf(uuid + HEAD, DIGITS + 1, "%012" PRIx64,
		    ((uint64_t)id ^ mask) & MASK);
	return rc;
}

int64_t
downstream_id(const unsigned char secret[SCOPE_SECRET_LEN], const char *uuid)
{
	uint64_t mask, id;

	if (strlen(uuid) != RECORD_UUID_LEN ||
	    strspn(uuid + HEAD, "0123456789abcdef") != DIGITS ||
	    downstream_mask(secret, uuid, &mask) != RC_OK)
		return 0;
	id = strtoull(uuid + HEAD, NULL, 16) ^ mask;
	return id <= RECORD_ID_MAX ? (int64_t)id : 0;
}
