/*
 * Forget: an operator deletes a key and everything stored with it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "postgres_impl.h"
#include "store_operator.h"

struct forget {
	struct store_forgotten *keys;
	/* the order of their numbers, in which each transaction locks them */
	size_t order[STORE_FORGET_MAX], n;
};

/* Deletes a key after it was locked, so that the deletion sees all that
 * transactions before it have stored. */
static enum rc
forget_key(struct pg *pg, struct store_forgotten *key)
{
	enum record_state from;
	const char *state;
	enum rc rc;

	pg_send(pg, PG_QUERY_KEY_LOCK, "i", key->id);
	pg_send(pg, PG_QUERY_FORGET, "is", key->id,
	    key->from != RECORD_NONE ? record_state_name(key->from) : NULL);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = pg_result(pg)) != RC_OK)
		return rc;
	rc = pg_one(pg, "p", &state);
	if (rc == RC_NOTFOUND)
		return RC_OK;
	if (rc == RC_OK && (state == NULL || !record_state_parse(state, &from)))
		rc = RC_CORRUPT;
	if (rc == RC_OK && !record_may_change(from, RECORD_NONE, true))
		rc = RC_INVALID;
	key->done = rc == RC_OK;
	return rc;
}

static enum rc
forget_run(struct pg *pg, void *arg)
{
	struct forget *f = arg;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < f->n; i++)
		f->keys[i].done = false;
	for (size_t i = 0; i < f->n && rc == RC_OK; i++)
		rc = forget_key(pg, &f->keys[f->order[i]]);
	return rc;
}

/* By insertion: they are few. */
static void
sort_keys(struct forget *f)
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
postgres_forget_some(struct store *s, struct store_forgotten *keys, size_t n)
{
	struct forget f = { .keys = keys, .n = n };
	enum rc rc;

	if (n > STORE_FORGET_MAX)
		return RC_INVALID;
	sort_keys(&f);
	rc = postgres_write(s, forget_run, &f);
	for (size_t i = 0; i < n && rc != RC_OK; i++)
		keys[i].done = false;
	return rc;
}

enum rc
postgres_forget(struct store *s, int64_t id, enum record_state from)
{
	struct store_forgotten key = { .id = id, .from = from };
	enum rc rc = postgres_forget_some(s, &key, 1);

	return rc == RC_OK && !key.done ? RC_LOST : rc;
}
