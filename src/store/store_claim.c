/*
 * Claim: sets the time of a reconciler's next try at a key, and counts the try
 * that begins now.
 */
#include "config.h"

#include "store_change.h"
#include "store_ops.h"

struct claim {
	int64_t id, after;
	struct store_tries tries;
	bool count;
};

static enum rc
claim_run(struct tx *tx, void *arg)
{
	const struct claim *c = arg;
	const struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_change_read(tx, c->id, false, &r);

	if (rc != RC_OK)
		return rc;
	was = r;
	rc = step_claim(
	    &r, c->tries.attempt, c->tries.tries, c->count, c->after, tx->at);
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, &r, &s, NULL);
	record_free(&r);
	return rc;
}

enum rc
store_claim(struct store *s, int64_t id, struct store_tries *tries, bool count,
    int64_t after)
{
	struct claim c = { id, after, *tries, count };
	enum rc rc = store_tx_write(s, 0, claim_run, &c);

	if (rc == RC_OK && count)
		tries->tries++;
	return rc;
}
