/*
 * The key store, for recover: which owners are dead.
 */
#include "config.h"

#include "store_impl.h"
#include "store_body.h"

/* A pass writes down the time last seen, but not more often than this (ms). */
#define CLOCK_GRAIN 30000

/* --- dead owners --------------------------------------------------------- */

static enum rc
owner_after(struct db *db, enum query query, int64_t after, int64_t *owner)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "i", after);
	return db_onef(s, "i", owner);
}

/* The next owner of leases, or of effects that are being tried, after that one;
 * owners are ordered by their names. */
static enum rc
next_owner(struct db *db, int64_t *owner)
{
	int64_t of_key = INT64_MAX, of_effect = INT64_MAX;
	enum rc rc;

	rc = owner_after(db, QUERY_RECOVER_OWNER, *owner, &of_key);
	if (rc == RC_OK || rc == RC_NOTFOUND)
		rc = owner_after(db, QUERY_EFFECT_OWNER, *owner, &of_effect);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	*owner = of_key < of_effect ? of_key : of_effect;
	return *owner != INT64_MAX ? RC_OK : RC_NOTFOUND;
}

/* A dead owner stays dead, so this test need not be in the transaction that
 * recovers its attempts. */
enum rc
sqlite_lost_owners(struct store *store, int64_t after, struct store_gone *gone,
    size_t max, size_t *n)
{
	struct liveness *liveness;
	struct store_reader *reader;
	int64_t owner = after;
	enum rc rc;
	bool alive;

	*n = 0;
	rc = sqlite_liveness(store, &liveness);
	if (rc != RC_OK)
		return rc;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	while (*n < max && (rc = next_owner(reader->db, &owner)) == RC_OK) {
		rc = liveness_alive(liveness, owner, &alive);
		if (rc != RC_OK)
			break;
		if (!alive)
			gone[(*n)++] = (struct store_gone){ .id = owner };
	}
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

bool
sqlite_owner_may_be_gone(struct store *store, int64_t owner)
{
	struct liveness *liveness;

	return sqlite_liveness(store, &liveness) == RC_OK &&
	    liveness_is_dead(liveness, owner);
}

bool
sqlite_owner_gone(struct store *store, int64_t owner, struct store_gone *gone)
{
	*gone = (struct store_gone){ .id = owner };
	return sqlite_owner_may_be_gone(store, owner);
}

enum rc
sqlite_recover(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	enum rc rc, clock;

	*n = 0;
	clock = store_clock_note(store, CLOCK_GRAIN);
	rc = store_recover_leases(store, limit, changes, n);
	if (rc == RC_OK)
		rc = store_body_recover(store);
	/* Keys recovered above no longer name their attempts. */
	if (rc == RC_OK)
		rc = store_attempt_clean(store);
	return rc != RC_OK ? rc : clock;
}
