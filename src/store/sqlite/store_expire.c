/*
 * Expire: deletes keys past their retention, oldest first, or makes them
 * markers.  A batch is bounded, because other writes wait for the lock
 * meanwhile.
 */
#include "config.h"

#include <string.h>

#include "fault.h"
#include "rows.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_recent.h"
#include "store_record.h"
#include "store_row.h"

/* Deleting a delivered effect takes as long as this many bytes of a body. */
#define EFFECT_BYTES 8192

struct expire_write {
	struct write w;
	struct expire_batch b;
};

static enum rc
expire_one(struct db *db, struct store_change *c, int64_t now)
{
	struct step s = { 0 };
	struct record r, was;
	enum rc rc = store_record_read(db, c->id, &r);

	if (rc != RC_OK)
		return rc == RC_LOST ? RC_CORRUPT : rc;
	was = r;
	rc = step_expire(&r, store_record_time(now), &s);
	if (rc == RC_OK)
		rc = store_record_write(db, &was, &r, &s, NULL);
	c->to = r.state;
	record_free(&r);
	return rc == RC_LOST ? RC_CORRUPT : rc;
}

/* The columns of QUERY_EXPIRE_ROWS after $row: the place of the row in the
 * list, even if the row makes no sense. */
struct also {
	int64_t last_at, last_id, effects;
	const char *last_state;
};

static const struct row_member also[] = {
	ROW_MEMBER('i', also, last_at),
	ROW_MEMBER('p', also, last_state),
	ROW_MEMBER('i', also, last_id),
	ROW_MEMBER('i', also, effects),
};

/* Reads the current row, and its place and bytes.  RC_CORRUPT: it makes no
 * sense. */
static enum rc
read_due(struct db_stmt *s, struct store_change *c, struct expire_place *place,
    int64_t *bytes)
{
	struct also a;
	struct record r;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	rc = db_members(s, also, sizeof(also) / sizeof(also[0]), &a);
	if (rc != RC_OK)
		return rc;
	c->id = a.last_id;
	if (a.last_state == NULL ||
	    !record_state_parse(a.last_state, &place->state))
		return RC_CORRUPT;
	place->is = true;
	place->expires_at = a.last_at;
	place->id = a.last_id;
	if ((rc = store_row_read(s, &r)) != RC_OK)
		return rc;
	*bytes += r.body_length + a.effects * EFFECT_BYTES;
	rows_change(&r, c);
	record_free(&r);
	return RC_OK;
}

static struct db_stmt *
list_stmt(struct db *db, enum query query, const struct expire_place *after,
    int limit, int64_t now)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "isidi", after->is ? after->expires_at : INT64_MIN,
	    record_state_name(after->state), after->id, limit, now);
	return s;
}

/* Reads what is due, oldest first, up to the limits of one transaction. */
static enum rc
list_due(struct expire_batch *b, struct db *db, int64_t now)
{
	struct db_stmt *s = list_stmt(
	    db, QUERY_EXPIRE_ROWS, &b->after, b->limit + STORE_BAD_ROWS, now);
	struct store_change *c;
	int64_t bytes = 0;
	enum rc rc = RC_OK;

	while (b->n < b->limit && b->bad < STORE_BAD_ROWS &&
	    bytes < STORE_EXPIRE_BYTES && (rc = db_step_row(s)) == RC_OK) {
		c = &b->changes[b->n];
		rc = read_due(s, c, &b->last, &bytes);
		if (rc == RC_OK) {
			b->n++;
			continue;
		}
		if (rc == RC_CORRUPT) {
			store_row_bad(db, "once_key", c->id);
			b->bad++;
		}
		store_changes_free(c, 1);
		if (rc != RC_CORRUPT)
			break;
		rc = RC_OK;
	}
	b->more = b->bad == STORE_BAD_ROWS;
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_expire_batch(struct expire_batch *b, struct db *db, int64_t now)
{
	enum rc rc;
	int i;

	store_changes_free(b->changes, b->n);
	b->n = b->bad = 0;
	b->last = b->after;
	if ((rc = store_recent_look(db)) != RC_OK)
		return rc;
	rc = list_due(b, db, now);
	if (rc == RC_OK && b->n > 0)
		rc = db_step_done(db_stmt(db, QUERY_MARK_LAST_ID));
	if (rc != RC_OK)
		return rc;
	for (i = 0; i < b->n; i++) {
		if ((rc = expire_one(db, &b->changes[i], now)) != RC_OK)
			return rc;
		FAULT(EXPIRE_KEY);
	}
	return RC_OK;
}

static enum rc
expire_run(struct write *w, struct db *db, int64_t now)
{
	return store_expire_batch(&((struct expire_write *)w)->b, db, now);
}

/*
 * If memory is short, the rows that a batch deletes come from the disk, page by
 * page.  This read waits for them before the lock is taken, not under it.  In
 * ten million keys that was 20 ms of the 25 ms that a batch of 100 took.
 */
enum rc
store_expire_ahead(
    struct db *db, const struct expire_place *after, int limit, int64_t now)
{
	struct db_stmt *s =
	    list_stmt(db, QUERY_EXPIRE_AHEAD, after, limit, now);
	enum rc rc;

	do
		rc = db_step_row(s);
	while (rc == RC_OK);
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Expires the keys that follow *place, which moves on past bad rows. */
static enum rc
expire_after(
    struct store *store, struct expire_place *place, struct expire_write *e)
{
	struct store_reader *reader;
	enum rc rc;

	e->b.after = *place;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = store_expire_ahead(
	    reader->db, place, e->b.limit, sqlite_now(store));
	store_reader_give(store, reader);
	if (rc == RC_OK || store_recent_mend(store, rc))
		rc = store_recent_do(store, &e->w);
	if (rc == RC_OK && e->b.bad > 0)
		*place = e->b.last;
	return rc;
}

enum rc
sqlite_expire(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	struct expire_write e = { .w.run = expire_run, .b.changes = changes };
	struct expire_place place;
	enum rc rc = RC_OK;
	bool more = true, first;

	*n = 0;
	e.b.limit = limit < STORE_EXPIRE_MAX ? limit : STORE_EXPIRE_MAX;
	if (limit < 0)
		return RC_INVALID;
	lock_take(&store->lock);
	place = store->expired;
	lock_give(&store->lock);
	first = !place.is;
	while (rc == RC_OK && more && e.b.n == 0) {
		rc = expire_after(store, &place, &e);
		more = e.b.more;
		if (rc != RC_OK || more || e.b.n > 0)
			continue;
		/* The end of the list.  A bad row may have been mended. */
		memset(&place, 0, sizeof(place));
		more = !first;
		first = true;
	}
	lock_take(&store->lock);
	store->expired = place;
	lock_give(&store->lock);
	if (rc == RC_OK)
		*n = e.b.n; /* the caller owns them now */
	else
		store_changes_free(changes, e.b.n);
	return rc;
}
