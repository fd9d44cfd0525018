/*
 * Forget: an operator deletes a key and everything stored with it.
 */
#include "config.h"

#include "store_impl.h"
#include "store_kept.h"
#include "store_operator.h"
#include "verb.h"

struct forget_write {
	struct write w;
	int64_t id;
	enum record_state from; /* RECORD_NONE: any */
};

/* RC_INVALID, or RC_CORRUPT: the key is deleted all the same, until the
 * rollback. */
static enum rc
forget_key(struct db *db, const struct forget_write *f)
{
	struct db_stmt *s = db_stmt(db, QUERY_FORGET);
	enum record_state from;
	const char *state;
	enum rc rc;

	db_bindf(s, "is", f->id,
	    f->from != RECORD_NONE ? record_state_name(f->from) : NULL);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	rc = db_rowf(s, "p", &state);
	if (rc == RC_OK && (state == NULL || !record_state_parse(state, &from)))
		rc = RC_CORRUPT;
	if (rc == RC_OK && !record_may_change(from, RECORD_NONE, true))
		rc = RC_INVALID;
	db_reset(s);
	return rc;
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
		rc = forget_key(db, f);
	if (rc == RC_OK)
		rc = store_kept_delete(db, f->id);
#ifdef RECORD_CHECKS
	(void)db_exec(db, queries_checks_operator(false));
#endif
	return rc;
}

enum rc
store_forget(struct store *store, int64_t id, enum record_state from)
{
	struct forget_write f = { .w.run = forget_run, .id = id, .from = from };

	return committer_do(store->committer, &f.w);
}
