/*
 * See postgres_identity.h.  Each value is the beginning of HMAC-SHA-256 of its
 * purpose and of the SHA-256 of the texts.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "postgres_impl.h"
#include "postgres_identity.h"

/* Bytes of a digest that depend on the key alone. */
#define KEY_BYTES 4

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char of_key[] = "oncewrap: digest of a key\n";
static const char of_identity[] = "oncewrap: digest of an identity\n";

static enum rc
identity_hash(const char *const *texts, size_t n, unsigned char *out)
{
	struct digest d;

	digest_begin(&d);
	for (size_t i = 0; i < n; i++)
		digest_text(&d, texts[i]);
	return digest_end(&d, out);
}

/* Puts the first bytes, of size, into out. */
static enum rc
identity_hmac(const unsigned char *secret, const char *purpose,
    const char *const *texts, size_t n, unsigned char *out, size_t size)
{
	unsigned char mac[DIGEST_LEN], digest[DIGEST_LEN];
	enum rc rc = identity_hash(texts, n, digest);

	if (rc == RC_OK)
		rc = digest_mac_for(
		    secret, purpose, digest, sizeof(digest), mac);
	if (rc == RC_OK)
		memcpy(out, mac, size);
	return rc;
}

enum rc
postgres_identity_digest(const unsigned char secret[SCOPE_SECRET_LEN],
    const struct store_identity *identity,
    unsigned char digest[POSTGRES_DIGEST_LEN])
{
	const char *const texts[] = { identity->key, identity->path,
		identity->scope };
	enum rc rc;

	rc = identity_hmac(secret, of_key, texts, 1, digest, KEY_BYTES);
	if (rc == RC_OK)
		rc = identity_hmac(secret, of_identity, texts, 3,
		    digest + KEY_BYTES, POSTGRES_DIGEST_LEN - KEY_BYTES);
	return rc;
}

enum rc
postgres_identity_range(const unsigned char secret[SCOPE_SECRET_LEN],
    const char *key, unsigned char first[POSTGRES_DIGEST_LEN],
    unsigned char last[POSTGRES_DIGEST_LEN])
{
	memset(first, 0, POSTGRES_DIGEST_LEN);
	memset(last, 0xff, POSTGRES_DIGEST_LEN);
	if (identity_hmac(secret, of_key, &key, 1, first, KEY_BYTES) != RC_OK)
		return RC_NOMEM;
	memcpy(last, first, KEY_BYTES);
	return RC_OK;
}

/* --- specs of fingerprints ------------------------------------------------ */

/* Numbers that are noted, at most. */
#define SPECS_MAX 256

enum rc
postgres_spec_number(struct pg *pg, const char *text, int64_t *number)
{
	unsigned char digest[DIGEST_LEN];
	enum rc rc = digest_of(text, strlen(text), digest);

	if (rc != RC_OK)
		return rc;
	pg_send_quietly(pg, PG_QUERY_FINGERPRINT_SPEC_NEW, "bs", digest,
	    sizeof(digest), text);
	pg_send(pg, PG_QUERY_FINGERPRINT_SPEC_FIND, "bs", digest,
	    sizeof(digest), text);
	rc = pg_one(pg, "i", number);
	/* Another text with that digest? */
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* A list without a lock, to which is only added.  A configuration has few. */
struct postgres_spec {
	struct postgres_spec *next;
	int64_t owner, number;
	char text[];
};

int64_t
postgres_spec_noted(const struct store *s, int64_t owner, const char *text)
{
	const struct postgres_spec *spec = atomic_load(&s->specs);

	while (spec != NULL &&
	    (spec->owner != owner || strcmp(spec->text, text) != 0))
		spec = spec->next;
	return spec != NULL ? spec->number : 0;
}

void
postgres_spec_note(
    struct store *s, int64_t owner, const char *text, int64_t number)
{
	const size_t n = strlen(text) + 1;
	struct postgres_spec *spec;

	if (postgres_spec_noted(s, owner, text) != 0 ||
	    atomic_fetch_add(&s->nspecs, 1) >= SPECS_MAX ||
	    (spec = malloc(sizeof(*spec) + n)) == NULL)
		return;
	spec->owner = owner;
	spec->number = number;
	memcpy(spec->text, text, n);
	spec->next = atomic_load(&s->specs);
	while (!atomic_compare_exchange_weak(&s->specs, &spec->next, spec))
		;
}

void
postgres_spec_free(struct store *s)
{
	struct postgres_spec *spec = atomic_load(&s->specs), *next;

	for (; spec != NULL; spec = next) {
		next = spec->next;
		free(spec);
	}
}
