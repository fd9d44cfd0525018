/*
 * The next key to reconcile; and claim, which sets the time of a reconciler's
 * next try at a key, and counts the try that begins now.
 */
#include "config.h"

#include <string.h>

#include "store_change.h"
#include "store_ops.h"

struct due {
	int64_t host, after; /* after the caller of that number */
	struct record *key;
	int64_t first, now; /* when a key is due first; 0: there is none */
};

static enum rc
due_after(struct tx *tx, const struct due *d, int64_t caller)
{
	enum rc rc;

	tx_send(tx, TX_RECONCILE_DUE, "zii", tx->at.now, caller, d->host);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, d->key);
	return rc;
}

static enum rc
due_run(struct tx *tx, void *arg)
{
	struct due *d = arg;
	enum rc rc;

	memset(d->key, 0, sizeof(*d->key));
	d->first = 0;
	tx_send(tx, TX_RECONCILE_FIRST, "zi", tx->at.now, d->host);
	if ((rc = tx_one(tx, "mm", &d->first, &d->now)) != RC_OK)
		return rc;
	if (d->first > d->now)
		return RC_NOTFOUND;
	rc = due_after(tx, d, d->after);
	return rc == RC_NOTFOUND ? due_after(tx, d, INT64_MIN) : rc;
}

enum rc
store_due(struct store *s, int64_t after, struct record *key)
{
	struct due d = { .after = after, .key = key };
	struct liveness *liveness;
	enum rc rc;

	memset(key, 0, sizeof(*key));
	/* With a server, an operator may not have looked for this host's files
	 * yet.  Without them no key of its attempts is due here. */
	if (store_base(s)->file == NULL)
		(void)store_liveness(s, &liveness);
	d.host = store_base(s)->host;
	rc = store_tx_read(s, due_run, &d);
	if (rc == RC_NOTFOUND)
		key->reconcile_after = d.first;
	return rc;
}

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
