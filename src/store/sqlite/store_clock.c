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

enum rc
sqlite_make_durable(struct store *store, const struct record *record)
{
	struct clock_write c = {
		.w.run = touch_run,
		.w.flags = WRITE_REFUSABLE,
		.sync_foreign = true,
	};

	/* Others than handlers commit as this process does. */
	return record->unconfirmed && store->full
	    ? committer_do(store->committer, &c.w)
	    : RC_OK;
}
