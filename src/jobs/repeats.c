/*
 * See repeats.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lock.h"
#include "repeats.h"

static struct lock lock = { PTHREAD_MUTEX_INITIALIZER, LOCK_REPEATS };
static struct store_repeat counted[REPEATS_SCOPES];
static size_t ncounted;

/* The counts of a scope, or NULL: there is no room.  The caller holds the
 * lock. */
static struct store_repeat *
find(const char *scope)
{
	struct store_repeat *r = counted;

	for (; r < counted + ncounted; r++)
		if (strcmp(r->scope, scope) == 0)
			return r;
	if (ncounted == REPEATS_SCOPES || strlen(scope) > REPEATS_LENGTH ||
	    (r->scope = strdup(scope)) == NULL)
		return NULL;
	ncounted++;
	r->duplicates = r->misuse = 0;
	return r;
}

void
repeats_count(const char *scope, bool misuse)
{
	struct store_repeat *r;

	lock_take(&lock);
	r = find(scope);
	if (r != NULL && misuse)
		r->misuse++;
	else if (r != NULL)
		r->duplicates++;
	lock_give(&lock);
}

/* Takes away what was stored; the scopes that were not counted since go. */
static void
subtract(const struct store_repeat *stored, size_t n)
{
	struct store_repeat *to = counted;

	for (size_t i = 0; i < n; i++) {
		counted[i].duplicates -= stored[i].duplicates;
		counted[i].misuse -= stored[i].misuse;
	}
	for (size_t i = 0; i < ncounted; i++) {
		if (counted[i].duplicates > 0 || counted[i].misuse > 0)
			*to++ = counted[i];
		else
			free(counted[i].scope);
	}
	ncounted = (size_t)(to - counted);
}

enum rc
repeats_store(struct store *store)
{
	struct store_repeat *copy;
	enum rc rc;
	size_t n;

	if ((copy = calloc(REPEATS_SCOPES, sizeof(*copy))) == NULL)
		return RC_NOMEM;
	/* Only this function removes, so the texts stay. */
	lock_take(&lock);
	n = ncounted;
	memcpy(copy, counted, n * sizeof(*copy));
	lock_give(&lock);
	rc = store_repeats(store, copy, n);
	if (rc == RC_OK) {
		lock_take(&lock);
		subtract(copy, n);
		lock_give(&lock);
	}
	free(copy);
	return rc;
}
