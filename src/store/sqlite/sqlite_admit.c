/*
 * Admits a request: see store_admit.h.  A large one is stored in
 * pieces before its key exists: see store_stage.h.
 */
#include "config.h"

#include "sqlite.h"
#include "sqlite_tx.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_row.h"
#include "store_stage.h"
#include "sqlite_admit.h"

struct admit_write {
	struct write w; /* first */
	struct store_admit *admit;
	struct stage stage;
};

/* Reading costs little here. */
bool
sqlite_expects_new(const struct store *store)
{
	(void)store;
	return false;
}

enum rc
sqlite_admit_part(struct store_admit *p, struct db *db, bool *more)
{
	struct admit_write *x = p->write;

	*more = store_stage_has_more(&x->stage);
	return *more ? store_stage_piece(&x->stage, &x->w, db) : RC_OK;
}

enum rc
sqlite_admit_request(struct store_admit *p, struct db *db, int64_t id)
{
	return store_kept_request(db, id, &p->write->stage);
}

static enum rc
admit_run(struct write *w, struct db *db, int64_t now)
{
	struct admit_write *x = (struct admit_write *)w;
	struct store_admit *p = x->admit;
	struct sqlite_tx t;
	enum rc rc = RC_OK;

	store_stage_begin_run(&x->stage, w);
	p->more = store_stage_bytes(&x->stage);
	p->spec = 0;
	if (p->what->max_store != 0)
		rc = store_used_bytes(db, &p->used);
	if (rc != RC_OK)
		return rc;
	sqlite_tx_begin(&t, db, now);
	store_admit_ask(&t.tx, p);
	rc = store_admit_take(&t.tx, p);
	sqlite_tx_end(&t);
	if (rc == RC_OK && p->is_new)
		rc = store_row_list(db, p->taken.id, p->seen.recent);
	w->did |= sqlite_tx_did(&t);
	return rc;
}

enum rc
sqlite_admit_do(struct store *store, struct store_admit *p)
{
	struct admit_write x = {
		.w.run = admit_run,
		.w.flags = WRITE_NEW | WRITE_REFUSABLE,
		.admit = p,
	};
	struct liveness *liveness;
	enum rc rc = sqlite_liveness(store, &liveness);

	/*
	 * Writes to a file without a name are lost when this process ends; and
	 * if other processes do not see its lock, they recover its leases while
	 * it lives.
	 */
	if (rc == RC_OK)
		rc = store_guard_check(&store->guard);
	if (rc != RC_OK)
		return rc;
	p->secret = store->secret;
	p->owner = liveness_self(liveness);
	p->write = &x;
	rc = store_stage_init(&x.stage, store, p->what, p->keep);
	p->number.number = x.stage.identity;
	x.w.flags |= store_stage_flags(&x.stage);
	if (rc == RC_OK)
		rc = committer_do(store->committer, &x.w);
	store_stage_end(&x.stage, store, rc);
	return rc;
}
