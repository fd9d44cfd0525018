/*
 * Reads for pages.  A window of an index, or of the newest rows, is walked for
 * a bounded number of rows and a bounded time.  So a page costs the same on a
 * store of any size, and no long read keeps the write-ahead log from being
 * reset.
 */
#include "config.h"

#include <string.h>

#include "clock.h"
#include "store_impl.h"
#include "store_row.h"

#include "store_browse.h"

/* Rows and time (ms) of one walk.  The clock is read every CHECK rows. */
#define WINDOW 20000
#define TIME   15
#define CHECK  64

/* Walks the rows (id, whether it matches) of a statement that is bound. */
static enum rc
walk_window(struct db_stmt *s, struct store_found *found)
{
	const int64_t until = clock_mono() + TIME;
	int64_t id = 0;
	bool matches;
	enum rc rc = RC_OK;
	int rows;

	memset(found, 0, sizeof(*found));
	for (rows = 0; rc == RC_OK; rows++) {
		if (rows % CHECK == CHECK - 1 && clock_mono() >= until)
			break;
		if ((rc = db_step_row(s)) != RC_OK)
			break;
		if ((rc = db_rowf(s, "i?", &id, &matches)) != RC_OK)
			break;
		if (matches && found->n < STORE_BROWSE_ROWS)
			found->id[found->n++] = id;
		found->count += matches;
	}
	db_reset(s);
	found->all = rc == RC_NOTFOUND && rows < WINDOW;
	if (!found->all)
		found->next = id;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* All is decided by the first that applies: the rows that an index finds are
 * few. */
static enum rc
browse(struct store *store, struct db *db, const struct store_browse *b,
    struct store_found *found)
{
	const char *state =
	    b->state != RECORD_NONE ? record_state_name(b->state) : NULL;
	bool by_number = false;
	int64_t first, last;
	struct db_stmt *s;
	enum rc rc;

	if (b->key != NULL) {
		identity_range(&store->seed, b->key, &first, &last);
		s = db_stmt(db, QUERY_BROWSE_KEY);
		db_bindf(s, "sssuiii", b->key, b->path, state, b->downstream,
		    (int64_t)WINDOW, first, last);
	} else if (b->downstream == NULL && b->state == RECORD_IN_PROGRESS) {
		s = db_stmt(db, QUERY_BROWSE_RUNNING);
		db_bindf(s, "si", b->path, (int64_t)WINDOW);
	} else if (b->downstream == NULL &&
	    (b->state == RECORD_PENDING || b->state == RECORD_UNKNOWN ||
		b->state == RECORD_DEAD_LETTER)) {
		s = db_stmt(db, QUERY_BROWSE_OPEN);
		db_bindf(s, "ssi", state, b->path, (int64_t)WINDOW);
	} else {
		by_number = true;
		s = db_stmt(db, QUERY_BROWSE_ALL);
		db_bindf(s, "issui", b->before > 0 ? b->before : INT64_MAX,
		    b->path, state, b->downstream, (int64_t)WINDOW);
	}
	rc = walk_window(s, found);
	/* Only numbers of keys are a place from which to look further. */
	if (!by_number)
		found->next = 0;
	return rc;
}

/* The key with that downstream key, if it can be found at once. */
static enum rc
browse_downstream(struct store *store, struct db *db,
    const struct store_browse *b, struct store_found *found)
{
	struct db_stmt *s;
	struct record r;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = store_find_told(store, db, b->downstream, &found->id[0]);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_BROWSE_ROW);
	db_bindf(s, "i", found->id[0]);
	rc = store_row_next(db, s, &r);
	db_reset(s);
	if (rc != RC_OK)
		return rc;
	found->all = true;
	found->n = (b->key == NULL || strcmp(b->key, r.key) == 0) &&
	    (b->path == NULL || strcmp(b->path, r.path) == 0) &&
	    (b->state == RECORD_NONE || b->state == r.state);
	found->count = (int64_t)found->n;
	record_free(&r);
	return RC_OK;
}

enum rc
sqlite_browse(struct store *store, const struct store_browse *b,
    struct store_found *found)
{
	struct store_reader *reader;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = RC_NOTFOUND;
	if (b->downstream != NULL && b->before == 0)
		rc = browse_downstream(store, reader->db, b, found);
	if (rc == RC_NOTFOUND)
		rc = browse(store, reader->db, b, found);
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_browse_effects(
    struct store *store, int64_t key_id, struct store_found *found)
{
	const enum query query =
	    key_id == 0 ? QUERY_BROWSE_DEAD_EFFECTS : QUERY_BROWSE_EFFECTS;
	struct store_reader *reader;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = store_reader_query(store, query, &reader);
	if (rc != RC_OK)
		return rc;
	if (key_id == 0)
		db_bindf(reader->s, "i", (int64_t)WINDOW);
	else
		db_bindf(reader->s, "ii", key_id, (int64_t)WINDOW);
	rc = walk_window(reader->s, found);
	found->next = 0;
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_browse_key(
    struct store *store, int64_t id, struct record *r, struct response *head)
{
	struct store_reader *reader;
	enum rc rc;

	memset(r, 0, sizeof(*r));
	rc = store_reader_query(store, QUERY_BROWSE_ROW, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "i", id);
	rc = store_row_next(reader->db, reader->s, r);
	if (rc == RC_OK && head != NULL && r->kept &&
	    store_read_head(reader->s, r, head) != RC_OK) {
		response_free(head);
		response_init(head);
	}
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_browse_effect(struct store *store, int64_t id, struct store_effect *e)
{
	struct store_reader *reader;
	enum rc rc;

	memset(e, 0, sizeof(*e));
	rc = store_reader_query(store, QUERY_BROWSE_EFFECT, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "i", id);
	rc = store_row_next_effect(reader->db, reader->s, e);
	store_reader_give(store, reader);
	return rc;
}

static const enum record_state aged[] = { RECORD_COMPLETED,
	RECORD_FAILED_RETRYABLE, RECORD_EXPIRED };

/* Counts the states that end by age now, if that takes one walk; else leaves
 * *c. */
static enum rc
count_few(struct store *store, struct store_browse_counts *c)
{
	struct store_walk walk = { 0 };
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = store_walk_keys(reader->db, &walk, WINDOW);
	store_reader_give(store, reader);
	if (rc != RC_NOTFOUND)
		return rc;
	for (size_t i = 0; i < sizeof(aged) / sizeof(aged[0]); i++)
		c->keys[aged[i]] = walk.sum[aged[i]];
	return RC_OK;
}

/* In a larger store these are as of the last tally.  False: there is none, or
 * it has found so few that they are counted now. */
static bool
count_tallied(struct store *store, struct store_browse_counts *c)
{
	int64_t sum = 0;
	bool counted;

	lock_take(&store->lock);
	counted = store->tally.counted;
	for (size_t i = 0; i < sizeof(aged) / sizeof(aged[0]); i++) {
		c->keys[aged[i]] = counted ? store->tally.key[aged[i]] : -1;
		sum += c->keys[aged[i]];
	}
	lock_give(&store->lock);
	return counted && sum > WINDOW;
}

enum rc
sqlite_browse_count(struct store *store, struct store_browse_counts *c)
{
	static const enum record_state open[] = { RECORD_PENDING,
		RECORD_IN_PROGRESS, RECORD_UNKNOWN, RECORD_DEAD_LETTER };
	struct store_browse b = { 0 };
	struct store_found found;
	enum rc rc = RC_OK;

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		b.state = open[i];
		if ((rc = sqlite_browse(store, &b, &found)) != RC_OK)
			return rc;
		c->keys[open[i]] = found.count;
		c->more[open[i]] = !found.all;
	}
	return count_tallied(store, c) ? RC_OK : count_few(store, c);
}
