/*
 * See store_guard.h.
 *
 * Names: a change of any name in a folder changes the folder's ctime, which no
 * program can set, so one stat(2) of the folder replaces one of each file.  The
 * ctime has the kernel's coarse grain: it is trusted only once it is so old
 * that a later change must show.
 *
 * Content: a store has a secret of its own.  The highest number of a key never
 * goes down, so each key that was made since a copy gives that copy away.  So
 * does the time at which the store was last seen, which never goes back: each
 * start and each sweep writes it.  Neither costs a commit another page.  An
 * attempt of a key that was there has no new number: the commit that begins it
 * sets the next seal, which costs a page.  What is in the file and not in the
 * log is looked at by store_guard_file.c.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "store_guard.h"

/* Upper limit for the grain of a file system's times (ms): FAT has 2 s. */
#define GRAIN 3000

static void
guard_know(struct store_guard *g, int i)
{
	struct stat st;

	if (lstat(g->file[i].name, &st) == -1)
		return;
	g->file[i].dev = st.st_dev;
	g->file[i].ino = st.st_ino;
	atomic_store(&g->file[i].known, true);
}

enum rc
store_guard_init(struct store_guard *g, const char *file)
{
	static const char *const suffix[] = { GUARD_NAMES(WORDS_WORD) };
	const char *slash = strrchr(file, '/');
	struct stat st;

	memset(g, 0, sizeof(*g));
	atomic_init(&g->bad, -1);
	if (slash == NULL)
		return RC_INVALID;
	for (int i = 0; i < GUARD_FILES; i++) {
		if (asprintf(&g->file[i].name, "%s%s", file, suffix[i]) == -1) {
			g->file[i].name = NULL;
			return RC_NOMEM;
		}
		if (i != GUARD_LOCK)
			guard_know(g, i);
	}
	g->folder = strndup(file, (size_t)(slash + 1 - file));
	if (g->folder == NULL)
		return RC_NOMEM;
	if (!g->file[GUARD_DATABASE].known || stat(g->folder, &st) == -1)
		return RC_REPLACED;
	g->dev = st.st_dev;
	g->ino = st.st_ino;
	return RC_OK;
}

void
store_guard_free(struct store_guard *g)
{
	for (int i = 0; i < GUARD_FILES; i++)
		free(g->file[i].name);
	free(g->folder);
}

void
store_guard_add_lock(struct store_guard *g)
{
	guard_know(g, GUARD_LOCK);
}

/* --- names --------------------------------------------------------------- */

/* The index of the first file that is not in place, or -1. */
static int
find_bad(const struct store_guard *g)
{
	struct stat st;

	for (int i = 0; i < GUARD_FILES; i++)
		if (atomic_load(&g->file[i].known) &&
		    (lstat(g->file[i].name, &st) == -1 ||
			st.st_dev != g->file[i].dev ||
			st.st_ino != g->file[i].ino))
			return i;
	return -1;
}

static void
log_change(const struct store_guard *g, int bad, int before)
{
	if (bad == before)
		return;
	if (bad != -1)
		log_event(LOG_ERROR, "store-replaced", NULL,
		    LOG_S("file", g->file[bad].name),
		    LOG_S("message",
			"it was removed or replaced; put it back, or restart "
			"oncewrap to use what is there"));
	else
		log_event(LOG_WARN, "store-in-place", NULL,
		    LOG_S("file", g->file[before].name));
}

enum rc
store_guard_check(struct store_guard *g)
{
	const int64_t now = clock_wall();
	int64_t changed = 0;
	struct stat st;
	int bad;

	if (store_guard_mapped(g) != RC_OK)
		return RC_WENT_BACK;
	if (stat(g->folder, &st) == 0 && st.st_dev == g->dev &&
	    st.st_ino == g->ino)
		changed = (int64_t)st.st_ctim.tv_sec * 1000000000 +
		    st.st_ctim.tv_nsec;
	if (changed != 0 && changed == atomic_load(&g->quiet))
		return RC_OK;
	bad = find_bad(g);
	log_change(g, bad, atomic_exchange(&g->bad, bad));
	if (bad != -1)
		return RC_REPLACED;
	if (changed != 0 && changed / 1000000 < now - GRAIN)
		atomic_store(&g->quiet, changed);
	return RC_OK;
}

/* --- content -------------------------------------------------------------- */

enum rc
store_guard_went_back(struct store_guard *g, const char *what)
{
	if (!atomic_exchange(&g->went_back, true))
		log_event(LOG_ERROR, "store-went-back", NULL,
		    LOG_S("database", g->file[GUARD_DATABASE].name),
		    LOG_S("message", what));
	return RC_WENT_BACK;
}

enum rc
store_guard_past(struct store_guard *g, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_PAST);
	const char *what = NULL;
	const void *secret, *seal;
	int64_t last, id;
	enum rc rc;
	size_t n, nseal;

	rc = db_step_row(s);
	if (rc == RC_NOTFOUND)
		return store_guard_went_back(g, "its first rows are gone");
	if (rc != RC_OK)
		return rc;
	if ((rc = db_rowf(s, "bbii", &secret, &n, &seal, &nseal, &last, &id)) !=
	    RC_OK) {
		db_reset(s);
		return rc;
	}
	store_guard_read_seal(g, seal, nseal);
	if (n != sizeof(g->secret))
		what = "it has no secret";
	else if (memcmp(secret, g->secret, n) != 0)
		what = "it is another store's content";
	else if (last < g->last || id < g->id || g->seal < g->least)
		what = "it lacks what was written to it: an older copy was "
		       "put in its place; restart oncewrap to go on with that";
	db_reset(s);
	if (what != NULL)
		return store_guard_went_back(g, what);
	g->least = g->seal;
	g->last = last;
	g->id = g->new_id = id;
	return RC_OK;
}

enum rc
store_guard_secret(struct db *db, const struct identity_seed *seed)
{
	struct db_stmt *s = db_stmt(db, QUERY_OLDEST);
	struct store_identity texts;
	bool any = false, fits = false;
	int64_t number;
	enum rc rc;

	/* Some rows may be damaged, so that one is enough. */
	while (!fits && (rc = db_step_row(s)) == RC_OK) {
		any = true;
		if (db_rowf(s, "pppi", &texts.key, &texts.path, &texts.scope,
			&number) == RC_OK)
			fits = identity_number(seed, &texts) == number;
	}
	db_reset(s);
	if (fits)
		return RC_OK;
	if (rc != RC_NOTFOUND)
		return rc;
	return any ? RC_CORRUPT : RC_OK;
}

enum rc
store_guard_note(struct store_guard *g, struct db *db)
{
	enum rc rc = db_onef(db_stmt(db, QUERY_PAST), "---i", &g->new_id);

	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	if ((rc = db_log_check(db)) == RC_LOST)
		return store_guard_went_back(g, "its log was truncated");
	if (rc == RC_OK)
		rc = store_guard_file(g, db);
	if (rc == RC_OK)
		g->below = atomic_load(&g->sealed);
	return rc;
}

void
store_guard_commit(struct store_guard *g, struct db *db)
{
	if (atomic_load(&g->due) != g->seal) {
		atomic_store(&g->due_log, 0);
		atomic_store(&g->due, g->seal);
		atomic_store(&g->due_log, db_log_salt(db));
	}
	g->id = g->new_id;
	g->least = g->seal;
	g->log = g->new_log;
	g->moved = g->new_moved;
}

void
store_guard_why(const struct store_guard *g, char *why, size_t size)
{
	const int bad = atomic_load(&g->bad);

	if (atomic_load(&g->went_back))
		snprintf(why, size,
		    "store-went-back: the database lacks what was written "
		    "to it");
	else
		snprintf(why, size, "%s has been removed or replaced",
		    bad != -1 ? g->file[bad].name : "a file of the database");
}
