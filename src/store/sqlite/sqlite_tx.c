/*
 * A transaction on SQLite: see tx.h.  A statement runs when its result is read.
 */
#include "config.h"

#include <assert.h>

#include "clock.h"
#include "store_impl.h"
#include "store_admit.h"
#include "store_body.h"
#include "store_outcome.h"

static const enum query queries[] = {
#define X(name) [TX_##name] = QUERY_##name,
	TX_QUERIES(X)
#undef X
};

static struct sqlite_tx *
of_sqlite(struct tx *tx)
{
	return (struct sqlite_tx *)(void *)tx;
}

struct db *
sqlite_tx_db(struct tx *tx)
{
	return of_sqlite(tx)->db;
}

static void
tx_sqlite_send(struct tx *tx, enum tx_query q, const char *format, va_list *ap)
{
	struct sqlite_tx *t = of_sqlite(tx);
	struct db_stmt *s = db_stmt(t->db, queries[q]);

	assert(t->n < SQLITE_TX_QUEUE);
	db_vbindf(s, format, ap);
	t->queue[(t->first + t->n++) % SQLITE_TX_QUEUE] = s;
}

static enum rc
tx_sqlite_result(struct tx *tx)
{
	struct sqlite_tx *t = of_sqlite(tx);

	if (t->now != NULL)
		db_reset(t->now);
	assert(t->n > 0);
	t->now = t->queue[t->first];
	t->first = (t->first + 1) % SQLITE_TX_QUEUE;
	t->n--;
	return RC_OK;
}

static enum rc
tx_sqlite_next(struct tx *tx)
{
	return db_step_row(of_sqlite(tx)->now);
}

static enum rc
tx_sqlite_row(struct tx *tx, const char *format, va_list *ap)
{
	return db_vrowf(of_sqlite(tx)->now, format, ap);
}

static enum rc
tx_sqlite_members(
    struct tx *tx, const struct row_member *members, size_t n, void *out)
{
	return db_members(of_sqlite(tx)->now, members, n, out);
}

static enum rc
tx_sqlite_changed(struct tx *tx, int *n)
{
	enum rc rc = tx_sqlite_result(tx);

	return rc == RC_OK ? db_update(of_sqlite(tx)->now, n) : rc;
}

static enum rc
tx_sqlite_must_change(struct tx *tx)
{
	return tx_change_one(tx, RC_CORRUPT);
}

static enum rc
tx_sqlite_spec(struct tx *tx, const char *spec, int64_t *number)
{
	struct db *db = of_sqlite(tx)->db;
	struct db_stmt *s = db_stmt(db, QUERY_FINGERPRINT_SPEC_FIND);
	enum rc rc;

	db_bindf(s, "s", spec);
	rc = db_onef(s, "i", number);
	if (rc != RC_NOTFOUND)
		return rc;
	s = db_stmt(db, QUERY_FINGERPRINT_SPEC_NEW);
	db_bindf(s, "s", spec);
	rc = db_onef(s, "i", number);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* The numbers of keys that are deleted are not used again. */
static enum rc
mark_last(struct sqlite_tx *t)
{
	if (t->marked)
		return RC_OK;
	t->marked = true;
	return db_step_done(db_stmt(t->db, QUERY_MARK_LAST_ID));
}

static enum rc
tx_sqlite_erase(
    struct tx *tx, int64_t id, enum tx_beside what, enum record_state state)
{
	struct sqlite_tx *t = of_sqlite(tx);
	enum rc rc = what == TX_ALL ? mark_last(t) : RC_OK;

	(void)state;
	if (rc != RC_OK)
		return rc;
	if (t->leaves) {
		rows_bad(db_file(t->db), "once_piece", id);
		return RC_OK;
	}
	if (what == TX_PAYLOAD)
		return store_body_run(
		    t->db, QUERY_DELETE_PIECES, TX_PAYLOAD_PIECES(id));
	if (what == TX_REQUEST)
		return store_body_delete_request(t->db, id);
	return store_body_delete_all(t->db, id);
}

/* The key names the pieces of a large answer from then on. */
static enum rc
tx_sqlite_body(struct tx *tx, struct outcome_change *o, bool drop)
{
	struct db *db = of_sqlite(tx)->db;
	struct store_body *b = o->body;
	struct rows_answer c;
	struct db_stmt *s;
	enum rc rc;

	rows_answer(&o->outcome, &c);
	if (drop || !c.apart)
		return b->stored > 0 ? store_body_drop(b, db) : RC_OK;
	rc = store_body_use(b, db);
	if (rc != RC_OK || b->id == o->id)
		return rc;
	s = db_stmt(db, QUERY_ANSWER_NEW);
	db_bindf(s, "ii", o->id, b->id);
	return db_step_done(s);
}

static enum rc
tx_sqlite_request(struct tx *tx, struct store_admit *p, int64_t id)
{
	const struct store_reservation *what = p->what;
	struct store_body *b = p->body;
	struct db *db = of_sqlite(tx)->db;
	struct db_stmt *s;
	enum rc rc = store_body_delete_request(db, id);

	if (rc == RC_OK && b == NULL)
		rc = store_body_room(db, what->body_len);
	if (rc == RC_OK)
		rc = b != NULL ? store_body_use(b, db)
			       : store_body_count(db, (int64_t)p->more);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_REQUEST_NEW);
	db_bindf(s, "ibbii", id, what->environment, what->environment_len,
	    what->body, b == NULL ? what->body_len : 0, (int64_t)what->body_len,
	    b == NULL ? 0 : b->id);
	return db_step_done(s);
}

/* A large one is stored once the first piece counts for max_kept. */
static enum rc
tx_sqlite_request_part(struct tx *tx, struct store_admit *p)
{
	p->part = p->body != NULL && p->body->stored == 0;
	return p->part ? store_body_begin(p->body, of_sqlite(tx)->db) : RC_OK;
}

static const struct tx_ops ops = { tx_sqlite_send, tx_sqlite_result,
	tx_sqlite_next, tx_sqlite_row, tx_sqlite_members, tx_sqlite_changed,
	tx_sqlite_must_change, tx_sqlite_spec, tx_sqlite_erase, tx_sqlite_body,
	tx_sqlite_request, tx_sqlite_request_part, NULL };

void
sqlite_tx_begin(struct sqlite_tx *t, struct db *db, int64_t now)
{
	*t = (struct sqlite_tx){
		.tx = {
			.ops = &ops,
			.database = db_file(db),
			.at = { now, clock_wall(), now },
		},
		.db = db,
	};
}

void
sqlite_tx_end(struct sqlite_tx *t)
{
	if (t->now != NULL)
		db_reset(t->now);
}

struct row_range
sqlite_number(const struct store *store, const struct store_identity *identity)
{
	struct row_range range;

	memset(&range, 0, sizeof(range));
	if (identity->path != NULL) {
		range.first.number = identity_number(&store->seed, identity);
		range.last = range.first;
	} else
		identity_range(&store->seed, identity->key, &range.first.number,
		    &range.last.number);
	return range;
}
