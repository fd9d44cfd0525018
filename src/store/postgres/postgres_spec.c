/*
 * See postgres_spec.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "postgres_impl.h"
#include "postgres_spec.h"

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
