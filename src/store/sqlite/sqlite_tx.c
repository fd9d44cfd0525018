/*
 * A transaction on SQLite: see tx.h.  A statement runs when its result is read.
 */
#include "config.h"

#include <assert.h>

#include "store_impl.h"

/* Statements that wait for tx_result(). */
#define QUEUE 8

struct sqlite_tx {
	struct tx tx;
	struct db *db;
	struct db_stmt *queue[QUEUE], *now;
	unsigned first, n;
};

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

static void
tx_sqlite_send(struct tx *tx, enum tx_query q, const char *format, va_list *ap)
{
	struct sqlite_tx *t = of_sqlite(tx);
	struct db_stmt *s = db_stmt(t->db, queries[q]);

	assert(t->n < QUEUE);
	db_vbindf(s, format, ap);
	t->queue[(t->first + t->n++) % QUEUE] = s;
}

static enum rc
tx_sqlite_result(struct tx *tx)
{
	struct sqlite_tx *t = of_sqlite(tx);

	if (t->now != NULL)
		db_reset(t->now);
	assert(t->n > 0);
	t->now = t->queue[t->first];
	t->first = (t->first + 1) % QUEUE;
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

static const struct tx_ops ops = { tx_sqlite_send, tx_sqlite_result,
	tx_sqlite_next, tx_sqlite_row, tx_sqlite_members };

static enum rc
run(struct store *store, struct store_reader *reader, tx_body *body, void *arg)
{
	struct sqlite_tx t = {
		.tx = { &ops, store->file },
		.db = reader->db,
	};
	const enum rc rc = body(&t.tx, arg);

	if (t.now != NULL)
		db_reset(t.now);
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_tx_read(struct store *store, tx_body *body, void *arg)
{
	struct store_reader *reader;
	enum rc rc = store_reader_begin(store, &reader);

	return rc == RC_OK ? run(store, reader, body, arg) : rc;
}

enum rc
sqlite_tx_look(struct store *store, tx_body *body, void *arg)
{
	struct store_reader *reader;
	enum rc rc = store_reader_take(store, &reader);

	return rc == RC_OK ? run(store, reader, body, arg) : rc;
}

enum rc
sqlite_tx_range(
    const struct store *store, const char *key, struct row_value range[2])
{
	range[0].n = range[1].n = 0;
	identity_range(&store->seed, key, &range[0].number, &range[1].number);
	return RC_OK;
}
