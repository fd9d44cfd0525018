/*
 * Reads of the key store.  A read uses a connection of the pool, takes no lock
 * and writes nothing.
 *
 * Its data is copied, and the read ended, before the function waits or returns:
 * an open read keeps the write-ahead log from being reset.
 *
 * The last part is for recover: which owners are dead.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "metrics.h"
#include "rows.h"
#include "store_impl.h"
#include "store_body.h"

/* Caches (KiB).  That of the loop's reader holds the inner pages for 100,000
 * keys or so.  The other readers, as many as threads, serve passes, and what
 * the loop does not find in memory. */
#define LARGE_CACHE 1536
#define SMALL_CACHE 64

/*
 * A connection opens files by name, so it may be used only if they were in
 * place throughout.  The log is opened by the first read.
 */
static enum rc
is_the_same(struct store *store, struct db *db)
{
	int64_t version;
	enum rc rc;

	if ((rc = db_pragma(db, "schema_version", &version)) != RC_OK)
		return rc;
	rc = store_guard_check(&store->guard);
	return rc == RC_OK && db_has_moved(db) ? RC_REPLACED : rc;
}

static enum rc
open_reader(struct store *store, int cache, struct store_reader **out)
{
	struct store_reader *r;
	enum rc rc;

	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return RC_NOMEM;
	rc = db_open(&r->db, store->file, store->busy_timeout);
	if (rc != RC_OK)
		log_event(LOG_ERROR, "store-error", NULL,
		    LOG_S("database", store->file), LOG_S("doing", "open"),
		    LOG_S("message", rc_text(rc)));
	else
		rc = db_setup_reader(r->db, cache);
	if (rc == RC_OK)
		rc = is_the_same(store, r->db);
	if (rc != RC_OK) {
		db_close(r->db);
		free(r);
		return rc;
	}
	*out = r;
	return RC_OK;
}

enum rc
store_reader_take(struct store *store, struct store_reader **out)
{
	enum rc rc;

	if ((rc = store_guard_check(&store->guard)) != RC_OK)
		return rc;
	lock_take(&store->lock);
	if ((*out = store->idle) != NULL)
		store->idle = (*out)->next;
	lock_give(&store->lock);
	return *out != NULL ? RC_OK : open_reader(store, SMALL_CACHE, out);
}

/* Whether a page that was just read can be read so. */
static bool
can_glance(struct db *db)
{
	const unsigned before = db_glance_reads();
	int64_t length;
	char byte;
	bool can;

	if (db_read_file(db, 0, &byte, 1, &length) != RC_OK)
		return false;
	db_glance_begin(db);
	can = db_read_file(db, 0, &byte, 1, &length) == RC_OK &&
	    db_glance_reads() != before;
	db_glance_end(db);
	return can;
}

enum rc
store_reader_glancer(struct store *store)
{
	struct store_reader *r;
	enum rc rc = open_reader(store, LARGE_CACHE, &r);

	if (rc == RC_OK && can_glance(r->db)) {
		store->glancer = r;
	} else if (rc == RC_OK) {
		db_close(r->db);
		free(r);
	}
	return rc;
}

/* Whether the glancer has found the files good in this round. */
static bool
is_checked(const struct store *store, const struct store_reader *r)
{
	return r == store->glancer &&
	    r->checked_in == loop_round_number(store->base.loop);
}

enum rc
store_reader_glance(struct store *store, struct store_reader **out)
{
	enum rc rc;

	if ((*out = store->glancer) == NULL)
		return RC_BUSY;
	if (!is_checked(store, *out) &&
	    (rc = store_guard_check(&store->guard)) != RC_OK)
		return rc;
	db_glance_begin((*out)->db);
	return RC_OK;
}

enum rc
store_reader_begin(struct store *store, struct store_reader **out)
{
	enum rc rc = store_reader_take(store, out);

	if (rc != RC_OK)
		return rc;
	(*out)->begun = true;
	if ((rc = db_begin_read((*out)->db)) != RC_OK)
		store_reader_give(store, *out);
	return rc;
}

void
store_reader_give(struct store *store, struct store_reader *r)
{
	if (r->begun)
		db_rollback(r->db);
	r->begun = false;
	if (r == store->glancer) {
		db_glance_end(r->db);
		return;
	}
	lock_take(&store->lock);
	r->next = store->idle;
	store->idle = r;
	lock_give(&store->lock);
}

void
store_reader_close_all(struct store *store)
{
	struct store_reader *r;

	if (store->glancer != NULL) {
		store->glancer->next = store->idle;
		store->idle = store->glancer;
		store->glancer = NULL;
	}
	while ((r = store->idle) != NULL) {
		store->idle = r->next;
		db_close(r->db);
		free(r);
	}
}

enum rc
store_reader_after(struct store *store, struct store_reader *reader, enum rc rc)
{
	enum rc file;

	if (is_checked(store, reader) && (rc == RC_OK || rc == RC_NOTFOUND)) {
		file = store_guard_mapped(&store->guard);
	} else {
		file = store_guard_file(&store->guard, reader->db);
		if (file == RC_OK && reader == store->glancer)
			reader->checked_in =
			    loop_round_number(store->base.loop);
	}
	if (rc == RC_OK || file == RC_WENT_BACK)
		rc = file;
	if (rc != RC_OK && rc != RC_NOTFOUND && !db_glances(reader->db))
		metrics_count(METRICS_STORE_ERRORS);
	return rc;
}

/* --- lookups -------------------------------------------------------------- */

/*
 * Finds the record of an identity.  RC_OK, RC_NOTFOUND, or the reason why the
 * record cannot be read.  The record has no copy of the identity.  The
 * statement stays at the row; the caller resets it in any case.
 */
static enum rc
find(struct db *db, const struct store_identity *identity, int64_t number,
    struct record *r, struct db_stmt **s)
{
	enum rc rc;

	*s = db_stmt(db, QUERY_FIND);
	db_bindf(
	    *s, "sssi", identity->key, identity->path, identity->scope, number);
	rc = db_step_row(*s);
	if (rc != RC_OK)
		return rc;
	memset(r, 0, sizeof(*r));
	rc = rows_record_end(
	    r, false, db_members(*s, rows_record, rows_nrecord, r));
	if (rc == RC_CORRUPT)
		rows_bad(db_file(db), "once_key", r->id);
	return rc;
}

/* A handler has committed what is not confirmed; all else has a commit of
 * oncewrap's. */
bool
sqlite_is_durable(struct store *store, const struct record *record)
{
	return !store->full || !record->unconfirmed;
}

/* With that reader, which is given back. */
static enum rc
look_up(struct store *store, struct store_reader *reader,
    const struct store_identity *identity, struct record *r,
    struct store_inline_answer *small)
{
	struct rows_head h;
	struct db_stmt *s;
	enum rc rc = find(reader->db, identity,
	    identity_number(&store->seed, identity), r, &s);

	if (rc == RC_OK && small != NULL && r->replayable &&
	    db_members(s, rows_head, rows_nhead, &h) == RC_OK)
		rows_head_small(&h, r, small);
	db_reset(s);
	rc = store_reader_after(store, reader, rc);
	if (rc != RC_OK && small != NULL)
		store_inline_answer_free(small);
	store_reader_give(store, reader);
	if (rc == RC_OK)
		record_check(r);
	else
		record_free(r);
	return rc;
}

enum rc
sqlite_lookup(struct store *store, const struct store_identity *identity,
    struct record *r, struct store_inline_answer *small)
{
	struct store_reader *reader;
	enum rc rc;

	memset(r, 0, sizeof(*r));
	rc = store_reader_take(store, &reader);
	return rc == RC_OK ? look_up(store, reader, identity, r, small) : rc;
}

bool
sqlite_glance(struct store *store, const struct store_identity *identity,
    struct record *r, struct store_inline_answer *small, enum rc *rc)
{
	struct store_reader *reader;

	memset(r, 0, sizeof(*r));
	*rc = store_reader_glance(store, &reader);
	if (*rc == RC_OK)
		*rc = look_up(store, reader, identity, r, small);
	return *rc == RC_OK || *rc == RC_NOTFOUND;
}

/* --- dead owners ---------------------------------------------------------- */

/* The next owner after that one; owners are ordered by their names. */
static enum rc
next_owner(struct db *db, int64_t *owner)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECOVER_OWNER);

	db_bindf(s, "i", *owner);
	return db_onef(s, "i", owner);
}

/* A dead owner stays dead, so this test need not be in the transaction that
 * recovers its attempts. */
enum rc
sqlite_lost_owners(struct store *store, int64_t after, struct store_gone *gone,
    size_t max, size_t *n)
{
	struct liveness *liveness;
	struct store_reader *reader;
	int64_t owner = after;
	enum rc rc;
	bool alive;

	*n = 0;
	rc = sqlite_liveness(store, &liveness);
	if (rc != RC_OK)
		return rc;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	while (*n < max && (rc = next_owner(reader->db, &owner)) == RC_OK) {
		rc = liveness_alive(liveness, owner, &alive);
		if (rc != RC_OK)
			break;
		if (!alive)
			gone[(*n)++] = (struct store_gone){ .id = owner };
	}
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

bool
sqlite_owner_may_be_gone(struct store *store, int64_t owner)
{
	struct liveness *liveness;

	return sqlite_liveness(store, &liveness) == RC_OK &&
	    liveness_is_dead(liveness, owner);
}

bool
sqlite_owner_gone(struct store *store, int64_t owner, struct store_gone *gone)
{
	*gone = (struct store_gone){ .id = owner };
	return sqlite_owner_may_be_gone(store, owner);
}

/* A pass writes down the time last seen, but not more often than this (ms). */
#define CLOCK_GRAIN 30000

enum rc
sqlite_recover(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	enum rc rc, clock;

	*n = 0;
	clock = store_clock_note(store, CLOCK_GRAIN);
	rc = store_recover_leases(store, limit, changes, n);
	if (rc == RC_OK)
		rc = store_body_recover(store);
	/* Keys recovered above no longer name their attempts. */
	if (rc == RC_OK)
		rc = store_attempt_clean(store);
	return rc != RC_OK ? rc : clock;
}
