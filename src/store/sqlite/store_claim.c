/*
 * Claim: sets the time of a reconciler's next try at a key, and counts the try
 * that begins now.
 */
#include "config.h"

#include "store_impl.h"
#include "store_record.h"

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
	const struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_record_read(db, c->id, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	rc = step_claim(&r, c->tries.attempt, c->tries.tries, c->count,
	    c->after, store_record_time(now));
	if (rc == RC_OK)
		rc = store_record_write(db, &was, &r, &s, NULL);
	record_free(&r);
	return rc;
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
