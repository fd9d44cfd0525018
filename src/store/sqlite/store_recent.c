/*
 * See store_recent.h.
 */
#include "config.h"

#include "clock.h"
#include "rows.h"
#include "store_impl.h"
#include "store_recent.h"

/*
 * So many of the last keys stay recent, and usually have ended when they no
 * longer are.  Twice as many may be recent, so that one commit of so many
 * enters keys in the indexes.
 */
#define RECENT 64

/* So many keys are entered by one transaction, because other writes wait for
 * it.  There are more only if a foreign program has inserted rows. */
#define RECENT_MOST 4096

/* Ends the mending: so many transactions pass over more bad rows than there are
 * recent keys, unless planted numbers are far apart. */
#define MEND_RUNS 1000

/* After a disk refused to pass over a row, none is tried for so long (ms). */
#define MEND_PAUSE 1000

static enum rc
set_mark(struct db *db, int64_t recent)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECENT_END);

	db_bindf(s, "i", recent);
	return db_step_done(s);
}

/* query: RECENT_LIST; or RECENT_ONE, if end is the first number. */
static enum rc
list_to(struct db *db, enum query query, int64_t end)
{
	struct db_stmt *s = db_stmt(db, query);
	enum rc rc;

	db_bindf(s, "i", end);
	rc = db_step_done(s);
	return rc == RC_OK ? set_mark(db, end) : rc;
}

enum rc
store_recent_list(struct db *db, int64_t newest, int64_t recent)
{
	int64_t end = newest - RECENT;
	struct db_stmt *s;
	enum rc rc;

	if (recent > end - RECENT)
		return RC_OK;
	s = db_stmt(db, QUERY_RECENT_PART);
	db_bindf(s, "ii", end, (int64_t)RECENT_MOST);
	rc = db_onef(s, "i", &end);
	return rc == RC_OK ? list_to(db, QUERY_RECENT_LIST, end) : rc;
}

static enum rc
read_numbers(struct db *db, int64_t *newest, int64_t *recent)
{
	enum rc rc =
	    db_onef(db_stmt(db, QUERY_RECENT_NOW), "ii", newest, recent);

	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

enum rc
store_recent_look(struct db *db)
{
	int64_t newest, recent;
	enum rc rc = read_numbers(db, &newest, &recent);

	return rc == RC_OK ? store_recent_list(db, newest, recent) : rc;
}

/* --- after a failure ------------------------------------------------------ */

struct mend_write {
	struct write w;
	int64_t step;   /* lists so many numbers at most */
	bool pass;      /* passes over them instead, if they begin at from */
	int64_t from;   /* the last run began after this number */
	int64_t tried;  /* and tried so many */
	int64_t passed; /* or passed over this one; 0: over none */
	bool more;      /* there are more recent keys */
};

static enum rc
mend_run(struct write *w, struct db *db, int64_t now)
{
	struct mend_write *m = (struct mend_write *)w;
	int64_t newest, recent, end;
	enum rc rc;

	(void)now;
	m->tried = m->passed = 0;
	m->more = false;
	rc = read_numbers(db, &newest, &recent);
	if (rc != RC_OK || recent >= newest)
		return rc;
	if (recent < 0)
		recent = 0;
	if (recent != m->from) /* another thread or process has passed over */
		m->pass = false;
	m->from = recent;
	end = newest - recent > m->step ? recent + m->step : newest;
	m->tried = end - recent;
	m->more = end < newest;
	m->passed = m->pass ? end : 0;
	if (m->pass)
		return set_mark(db, end);
	/* Most of these statements fail to find the row that fails. */
	db_set_quiet(db, true);
	rc = list_to(
	    db, m->tried > 1 ? QUERY_RECENT_LIST : QUERY_RECENT_ONE, end);
	db_set_quiet(db, false);
	return rc;
}

static bool
may_be_row(enum rc rc)
{
	return rc == RC_CORRUPT || rc == RC_IO;
}

/* Chooses how many numbers the next transaction lists: fewer after a failure,
 * down to the row that fails, and then more again. */
static void
next_step(struct mend_write *m, enum rc rc)
{
	m->pass = rc != RC_OK && m->tried <= 1;
	if (rc == RC_OK)
		m->step = m->tried < INT64_MAX / 2 ? m->tried * 2 : INT64_MAX;
	else if (!m->pass)
		m->step = m->tried / 2;
}

static enum rc
list_all(struct store *store)
{
	struct mend_write m = { .w.run = mend_run, .step = INT64_MAX };
	enum rc rc;

	for (int n = 0;; n++) {
		rc = committer_do(store->committer, &m.w);
		/* A disk that takes no write at all says nothing about rows. */
		if (rc == RC_OK && m.passed != 0)
			rows_bad(store->file, "once_key", m.passed);
		if (rc == RC_OK && !m.more)
			return rc;
		/* No COMMIT fails because of a row. */
		if (rc != RC_OK &&
		    (m.pass || !may_be_row(rc) ||
			(m.w.did & WRITE_FAILED) == 0))
			return rc;
		next_step(&m, rc);
		if (n == MEND_RUNS) {
			m.pass = true;
			m.step = INT64_MAX;
		}
	}
}

bool
store_recent_mend(struct store *store, enum rc rc)
{
	const int64_t now = clock_mono();

	if (!may_be_row(rc) || now < atomic_load(&store->mend_after))
		return false;
	if (list_all(store) == RC_OK)
		return true;
	atomic_store(&store->mend_after, now + MEND_PAUSE);
	return false;
}

enum rc
store_recent_do(struct store *store, struct write *w)
{
	enum rc rc = committer_do(store->committer, w);

	if ((w->did & WRITE_FAILED) == 0 || !store_recent_mend(store, rc))
		return rc;
	return committer_do(store->committer, w);
}
