/*
 * Forget: an operator deletes a key and everything stored with it.
 */
#include "config.h"

#include "store_impl.h"
#include "store_operator.h"
#include "store_record.h"

struct forget_write {
	struct write w;
	struct store_forgotten *keys;
	size_t n;
};

static enum rc
forget_key(struct db *db, const struct store_forgotten *key)
{
	struct step s = { 0 };
	struct record r;
	enum rc rc = store_record_read(db, key->id, &r);

	if (rc != RC_OK)
		return rc;
	rc = step_forget(&r, key->from, &s);
	if (rc == RC_OK)
		rc = store_record_write(db, &r, &r, &s, NULL);
	record_free(&r);
	return rc;
}

/* RC_LOST: none of the keys could be deleted. */
static enum rc
forget_keys(struct db *db, const struct forget_write *f)
{
	enum rc rc = RC_OK;
	bool any = false;

	/* The transaction may be the second one, after the first one failed. */
	for (size_t i = 0; i < f->n; i++)
		f->keys[i].done = false;
	for (size_t i = 0; i < f->n && rc == RC_OK; i++) {
		rc = forget_key(db, &f->keys[i]);
		if (rc == RC_OK)
			any = f->keys[i].done = true;
		else if (rc == RC_LOST)
			rc = RC_OK;
	}
	return rc == RC_OK && !any ? RC_LOST : rc;
}

static enum rc
forget_run(struct write *w, struct db *db, int64_t now)
{
	const struct forget_write *f = (struct forget_write *)w;
	enum rc rc;

	(void)now;
#ifdef RECORD_CHECKS
	rc = db_exec(db, queries_checks_operator(true));
	if (rc != RC_OK)
		return rc;
#endif
	rc = db_step_done(db_stmt(db, QUERY_MARK_LAST_ID));
	if (rc == RC_OK)
		rc = forget_keys(db, f);
#ifdef RECORD_CHECKS
	(void)db_exec(db, queries_checks_operator(false));
#endif
	return rc;
}

enum rc
sqlite_forget_some(struct store *store, struct store_forgotten *keys, size_t n)
{
	struct forget_write f = { .w.run = forget_run, .keys = keys, .n = n };
	enum rc rc;

	if (n > STORE_FORGET_MAX)
		return RC_INVALID;
	rc = committer_do(store->committer, &f.w);
	for (size_t i = 0; i < n && rc != RC_OK; i++)
		keys[i].done = false;
	return rc == RC_LOST ? RC_OK : rc;
}

enum rc
sqlite_forget(struct store *store, int64_t id, enum record_state from)
{
	struct store_forgotten key = { .id = id, .from = from };
	enum rc rc = sqlite_forget_some(store, &key, 1);

	return rc == RC_OK && !key.done ? RC_LOST : rc;
}
