/*
 * Repeated requests of each scope, counted by repeats.c.
 */
#include "config.h"

#include "store_ops.h"

/* After that time (ms) without a repeat a scope is forgotten. */
#define KEEP (INT64_C(30) * 24 * 3600 * 1000)

struct repeats {
	const struct store_repeat *repeat;
	size_t n;
	int64_t now; /* store time */
};

static enum rc
repeats_run(struct tx *tx, void *arg)
{
	const struct repeats *r = arg;
	enum rc rc = RC_OK;
	int changed;

	for (size_t i = 0; i < r->n && rc == RC_OK; i++) {
		tx_send(tx, TX_REPEAT_ADD, "siii", r->repeat[i].scope,
		    r->repeat[i].duplicates, r->repeat[i].misuse, r->now);
		rc = tx_changed(tx, &changed);
	}
	if (rc != RC_OK)
		return rc;
	tx_send(tx, TX_REPEAT_FORGET, "i", r->now - KEEP);
	return tx_changed(tx, &changed);
}

enum rc
store_repeats(struct store *s, const struct store_repeat *repeat, size_t n)
{
	struct repeats r = { repeat, n, store_now(s) };

	return n > 0 ? store_tx_write(s, 0, repeats_run, &r) : RC_OK;
}
