/*
 * A transaction on PostgreSQL: see tx.h.
 */
#include "config.h"

#include "postgres_identity.h"
#include "postgres_impl.h"

struct postgres_tx {
	struct tx tx;
	struct pg *pg;
};

static const enum pg_query queries[] = {
#define X(name) [TX_##name] = PG_QUERY_##name,
	TX_QUERIES(X)
#undef X
};

static struct pg *
pg_of(struct tx *tx)
{
	return ((struct postgres_tx *)(void *)tx)->pg;
}

static void
tx_postgres_send(
    struct tx *tx, enum tx_query q, const char *format, va_list *ap)
{
	pg_vsend(pg_of(tx), queries[q], format, ap);
}

static enum rc
tx_postgres_result(struct tx *tx)
{
	return pg_result(pg_of(tx));
}

static enum rc
tx_postgres_next(struct tx *tx)
{
	return pg_next(pg_of(tx));
}

static enum rc
tx_postgres_row(struct tx *tx, const char *format, va_list *ap)
{
	return pg_vrow(pg_of(tx), format, ap);
}

static enum rc
tx_postgres_members(
    struct tx *tx, const struct row_member *members, size_t n, void *out)
{
	return pg_members(pg_of(tx), members, n, out);
}

static const struct tx_ops ops = { tx_postgres_send, tx_postgres_result,
	tx_postgres_next, tx_postgres_row, tx_postgres_members };

struct shared {
	const struct store *store;
	tx_body *body;
	void *arg;
};

static enum rc
run_shared(struct pg *pg, void *arg)
{
	const struct shared *s = arg;
	struct postgres_tx t = {
		.tx = { &ops, txn_database(s->store->pool) },
		.pg = pg,
	};

	return s->body(&t.tx, s->arg);
}

enum rc
postgres_tx_read(struct store *store, tx_body *body, void *arg)
{
	struct shared s = { store, body, arg };

	return postgres_read(store, run_shared, &s);
}

enum rc
postgres_tx_look(struct store *store, tx_body *body, void *arg)
{
	struct shared s = { store, body, arg };

	return postgres_look(store, run_shared, &s);
}

enum rc
postgres_tx_range(
    const struct store *store, const char *key, struct row_value range[2])
{
	range[0].n = range[1].n = POSTGRES_DIGEST_LEN;
	return postgres_identity_range(
	    store->secret, key, range[0].bytes, range[1].bytes);
}
