/*
 * Claim: sets the time of a reconciler's next try at a key, and counts the try
 * that begins now.
 */
#include "config.h"

#include "store_impl.h"
#include "verb.h"

struct claim_write {
	struct write w;
	int64_t id, after;
	struct store_tries tries;
	bool count;
};

static enum rc
claim_run(struct write *w, struct db *db, int64_t now)
{
	const struct claim_write *c = (struct claim_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_RECONCILE_CLAIM);

	db_bindf(s, "iddid", c->id, c->tries.tries, c->count, now + c->after,
	    c->tries.attempt);
	return verb_change_one(s, RC_LOST);
}

enum rc
sqlite_claim(struct store *store, int64_t id, struct store_tries *tries,
    bool count, int64_t after)
{
	struct claim_write c = {
		.w.run = claim_run,
		.id = id,
		.after = after,
		.tries = *tries,
		.count = count,
	};
	enum rc rc = committer_do(store->committer, &c.w);

	if (rc == RC_OK && count)
		tries->tries++;
	return rc;
}
