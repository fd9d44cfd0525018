/*
 * Clock: writes down the time, for store time after a reboot; or for the sake
 * of the commit.
 */
#include "config.h"

#include "store_impl.h"

struct clock_write {
	struct write w;
	int64_t grain; /* ms: skipped if it was written less than that ago */
	bool sync_foreign; /* makes others' commits durable */
};

static enum rc
note_run(struct write *w, struct db *db, int64_t now)
{
	const struct clock_write *c = (struct clock_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_LAST);

	db_bindf(s, "ii", now, c->grain);
	return db_step_done(s);
}

static enum rc
touch_run(struct write *w, struct db *db, int64_t now)
{
	const struct clock_write *c = (struct clock_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_TOUCH);

	db_bindf(s, "i", now);
	if (c->sync_foreign)
		w->did |= WRITE_SYNC_FIRST;
	return db_step_done(s);
}

enum rc
store_clock_note(struct store *store, int64_t grain)
{
	struct clock_write c = { .w.run = note_run, .grain = grain };

	return committer_do(store->committer, &c.w);
}

enum rc
store_clock_touch(struct store *store)
{
	struct clock_write c = {
		.w.run = touch_run,
		.w.flags = WRITE_REFUSABLE,
	};

	return committer_do(store->committer, &c.w);
}

/* --- processes with another durability ------------------------------------ */

struct mix_write {
	struct write w;
	const struct liveness *liveness;
	bool full;
};

/* A process that starts meanwhile has its lock already, or sets the mark
 * later. */
static enum rc
mix_run(struct write *w, struct db *db, int64_t now)
{
	const struct mix_write *m = (struct mix_write *)w;
	struct db_stmt *s = db_stmt(db, QUERY_META_UNSYNCED_SET);

	(void)now;
	if (m->full && !liveness_is_alone(m->liveness))
		return RC_OK;
	db_bindf(s, "d", !m->full);
	w->did |= WRITE_SYNC_FIRST;
	return db_step_done(s);
}

/* RC_OK; *unsynced: others may have committed what is not synced. */
static enum rc
read_mix(struct store *store, bool *unsynced)
{
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_query(store, QUERY_META_UNSYNCED, &reader);
	if (rc != RC_OK)
		return rc;
	rc = db_onef(reader->s, "?", unsynced);
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

enum rc
store_clock_mix(struct store *store)
{
	struct mix_write m = { .w.run = mix_run, .full = store->full };
	struct liveness *liveness;
	bool unsynced;
	enum rc rc;

	rc = read_mix(store, &unsynced);
	if (rc != RC_OK || unsynced == !store->full)
		return rc;
	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	m.liveness = liveness;
	return committer_do(store->committer, &m.w);
}

enum rc
sqlite_make_durable(struct store *store, const struct record *record)
{
	struct clock_write c = {
		.w.run = touch_run,
		.w.flags = WRITE_REFUSABLE,
		.sync_foreign = true,
	};
	bool unsynced = true;
	enum rc rc = RC_OK;

	if (!store->full)
		return RC_OK;
	if (!record->unconfirmed)
		rc = read_mix(store, &unsynced);
	return rc == RC_OK && unsynced ? committer_do(store->committer, &c.w)
				       : rc;
}
