/*
 * Forget: an operator deletes keys and everything stored with them.
 */
#include "config.h"

#include "store_change.h"
#include "store_ops.h"

struct forget {
	struct store_chosen *keys;
	/* by their numbers: in that order each transaction locks them */
	size_t order[STORE_CHOSEN_MAX], n;
};

static enum rc
forget_key(struct tx *tx, const struct store_chosen *key)
{
	struct step s = { 0 };
	struct record r;
	enum rc rc = store_change_read(tx, key->id, true, &r);

	if (rc != RC_OK)
		return rc;
	rc = key->attempt == 0 || key->attempt == r.attempt
	    ? step_forget(&r, key->from, &s)
	    : RC_LOST;
	if (rc == RC_OK)
		rc = store_change_write(tx, &r, &r, &s, NULL);
	record_free(&r);
	return rc;
}

/* RC_LOST: none of the keys could be deleted. */
static enum rc
forget_keys(struct tx *tx, void *arg)
{
	const struct forget *f = arg;
	struct store_chosen *key;
	enum rc rc = RC_OK;
	bool any = false;

	for (size_t i = 0; i < f->n; i++)
		f->keys[i].done = false;
	for (size_t i = 0; i < f->n && rc == RC_OK; i++) {
		key = &f->keys[f->order[i]];
		rc = forget_key(tx, key);
		if (rc == RC_OK)
			any = key->done = true;
		else if (rc == RC_LOST)
			rc = RC_OK;
	}
	return rc == RC_OK && !any ? RC_LOST : rc;
}

/* By insertion: they are few. */
static void
forget_sort(struct forget *f)
{
	size_t at;

	for (size_t i = 0; i < f->n; i++) {
		for (at = i;
		     at > 0 && f->keys[f->order[at - 1]].id > f->keys[i].id;
		     at--)
			f->order[at] = f->order[at - 1];
		f->order[at] = i;
	}
}

enum rc
store_forget_some(struct store *s, struct store_chosen *keys, size_t n)
{
	struct forget f = { .keys = keys, .n = n };
	enum rc rc;

	if (n > STORE_CHOSEN_MAX)
		return RC_INVALID;
	forget_sort(&f);
	rc = store_tx_write(s, 0, forget_keys, &f);
	for (size_t i = 0; i < n && rc != RC_OK; i++)
		keys[i].done = false;
	return rc == RC_LOST ? RC_OK : rc;
}

enum rc
store_forget(struct store *s, int64_t id, enum record_state from)
{
	struct store_chosen key = { .id = id, .from = from };
	enum rc rc = store_forget_some(s, &key, 1);

	return rc == RC_OK && !key.done ? RC_LOST : rc;
}
