/*
 * A transaction on PostgreSQL: see tx.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "postgres_impl.h"
#include "store_admit.h"

/* Of a number, with what ends the text. */
#define DIGITS 21

static const enum pg_query queries[] = {
#define X(name) [TX_##name] = PG_QUERY_##name,
	TX_QUERIES(X)
#undef X
};

static struct postgres_tx *
of_postgres(struct tx *tx)
{
	return (struct postgres_tx *)(void *)tx;
}

static struct pg *
pg_of(struct tx *tx)
{
	return of_postgres(tx)->pg;
}

static void
tx_postgres_send(
    struct tx *tx, enum tx_query q, const char *format, va_list *ap)
{
	struct postgres_tx *t = of_postgres(tx);

	if (t->writes && !t->asked) {
		pg_send(t->pg, PG_QUERY_TIME, "");
		t->asked = true;
	}
	pg_vsend(t->pg, queries[q], format, ap);
}

void
postgres_tx_time(struct postgres_tx *t, int64_t now, int64_t clock)
{
	t->asked = t->timed = true;
	t->tx.at = (struct step_time){ .now = now, .wall = now, .age = clock };
}

/* Reads what comes before the next result: the time, before the first one, and
 * those that tx_must_change() and erase have left. */
static enum rc
catch_up(struct postgres_tx *t)
{
	enum rc rc = RC_OK, wrong = RC_OK;
	int64_t now, clock;

	if (t->asked && !t->timed) {
		rc = pg_one(t->pg, "mm", &now, &clock);
		if (rc == RC_OK)
			postgres_tx_time(t, now, clock);
	}
	for (; rc == RC_OK && t->unread > 0; t->unread--)
		if ((rc = pg_result(t->pg)) == RC_OK && pg_changed(t->pg) != 1)
			wrong = t->unlocked ? RC_LOST : RC_CORRUPT;
	return rc == RC_OK ? wrong : rc;
}

static enum rc
tx_postgres_result(struct tx *tx)
{
	enum rc rc = catch_up(of_postgres(tx));

	return rc == RC_OK ? pg_result(pg_of(tx)) : rc;
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

static enum rc
tx_postgres_changed(struct tx *tx, int *n)
{
	enum rc rc = tx_postgres_result(tx);

	*n = rc == RC_OK ? pg_changed(pg_of(tx)) : 0;
	return rc;
}

static enum rc
tx_postgres_must_change(struct tx *tx)
{
	of_postgres(tx)->unread++;
	return RC_OK;
}

static enum rc
tx_postgres_spec(struct tx *tx, const char *spec, int64_t *number)
{
	enum rc rc;

	*number = 0;
	if (*spec == '\0')
		return RC_OK;
	rc = catch_up(of_postgres(tx));
	return rc == RC_OK ? postgres_spec_number(pg_of(tx), spec, number) : rc;
}

/* Like REQUEST_ERASE it gives one row. */
static void
send_erased(struct postgres_tx *t)
{
	if (t->nerased == 0)
		return;
	pg_send(t->pg, PG_QUERY_ERASE, "s", t->erased);
	t->unread++;
	t->nerased = 0;
}

static void
erase_later(struct postgres_tx *t, int64_t id)
{
	if (sizeof(t->erased) - t->nerased < 1 + DIGITS)
		send_erased(t);
	t->nerased += (size_t)snprintf(t->erased + t->nerased,
	    sizeof(t->erased) - t->nerased, "%s%" PRId64,
	    t->nerased > 0 ? " " : "", id);
}

static enum rc
tx_postgres_erase(
    struct tx *tx, int64_t id, enum tx_beside what, enum record_state state)
{
	struct postgres_tx *t = of_postgres(tx);

	switch (what) {
	case TX_REQUEST:
		pg_send(t->pg, PG_QUERY_REQUEST_ERASE, "is", id,
		    record_state_name(state));
		t->unread++;
		break;
	case TX_ALL:
		erase_later(t, id);
		break;
	case TX_PAYLOAD:
		pg_send_quietly(
		    t->pg, PG_QUERY_DELETE_PIECES, "i", TX_PAYLOAD_PIECES(id));
		break;
	}
	return RC_OK;
}

/* There is nothing to delete: what was stored of it was rolled back. */
static enum rc
tx_postgres_body(struct tx *tx, struct outcome_change *o, bool drop)
{
	struct rows_answer c;
	enum rc rc;

	rows_answer(&o->outcome, &c);
	if (drop || !c.apart)
		return RC_OK;
	rc = catch_up(of_postgres(tx));
	return rc == RC_OK
	    ? postgres_body_write(pg_of(tx), o->id, c.body, c.nbody)
	    : rc;
}

/* REQUEST_NEW gives a row, as catch_up() expects.  A large body is in no
 * group. */
static enum rc
tx_postgres_request(struct tx *tx, struct store_admit *p, int64_t id)
{
	const struct store_reservation *what = p->what;
	struct postgres_tx *t = of_postgres(tx);
	const bool apart = what->body_len > STORE_PIECE;
	enum rc rc;

	pg_send(t->pg, PG_QUERY_REQUEST_NEW, "ibbii", id, what->environment,
	    what->environment_len, what->body, apart ? 0 : what->body_len,
	    (int64_t)what->body_len, apart ? -id : (int64_t)0);
	t->unread++;
	if (!apart)
		return RC_OK;
	rc = catch_up(t);
	return rc == RC_OK
	    ? postgres_body_write(t->pg, -id, what->body, what->body_len)
	    : rc;
}

static enum rc
tx_postgres_owner_still(struct tx *tx, int64_t owner, int64_t beat)
{
	struct postgres_tx *t = of_postgres(tx);
	enum rc rc;

	pg_send(t->pg, PG_QUERY_OWNER_STILL, "ii", owner, beat);
	if ((rc = catch_up(t)) == RC_OK)
		rc = pg_one(t->pg, "-");
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

/* A request is stored in one transaction. */
static const struct tx_ops ops = {
	.send = tx_postgres_send,
	.result = tx_postgres_result,
	.next = tx_postgres_next,
	.row = tx_postgres_row,
	.members = tx_postgres_members,
	.changed = tx_postgres_changed,
	.must_change = tx_postgres_must_change,
	.spec = tx_postgres_spec,
	.erase = tx_postgres_erase,
	.body = tx_postgres_body,
	.request = tx_postgres_request,
	.owner_still = tx_postgres_owner_still,
};

struct shared {
	struct store *store;
	tx_body *body;
	void *arg;
	bool begins;
	unsigned did;
};

void
postgres_tx_begin(
    struct postgres_tx *t, const struct store *store, struct pg *pg)
{
	memset(t, 0, sizeof(*t));
	t->tx.ops = &ops;
	t->tx.database = txn_database(store->pool);
	t->pg = pg;
	t->writes = true;
}

static enum rc
run_shared(struct pg *pg, void *arg)
{
	const struct shared *s = arg;
	struct postgres_tx t;

	postgres_tx_begin(&t, s->store, pg);
	t.writes = false;
	return s->body(&t.tx, s->arg);
}

enum rc
postgres_tx_end(struct postgres_tx *t)
{
	send_erased(t);
	return catch_up(t);
}

enum rc
postgres_tx_run(const struct store *store, struct pg *pg, tx_body *body,
    void *arg, unsigned *did)
{
	struct postgres_tx t;
	enum rc rc;

	postgres_tx_begin(&t, store, pg);
	rc = body(&t.tx, arg);
	if (rc == RC_OK)
		rc = postgres_tx_end(&t);
	*did = t.tx.did;
	return rc;
}

static enum rc
run_writer(struct pg *pg, void *arg)
{
	struct shared *s = arg;
	enum rc rc;

	if (s->begins && (rc = postgres_may_begin_now(s->store)) != RC_OK)
		return rc;
	return postgres_tx_run(s->store, pg, s->body, s->arg, &s->did);
}

enum rc
postgres_tx(struct store *store, unsigned how, tx_body *body, void *arg)
{
	struct shared s = {
		.store = store,
		.body = body,
		.arg = arg,
		.begins = (how & TX_BEGINS) != 0,
	};
	enum rc rc;

	if ((how & TX_READ) != 0)
		return postgres_run(store, TXN_READ, run_shared, &s);
	if ((how & TX_LOOK) != 0)
		return postgres_run(store, TXN_LOOK, run_shared, &s);
	if (s.begins && !store->daemon)
		return RC_INVALID;
	if (s.begins && (rc = postgres_may_begin(store, NULL)) != RC_OK)
		return rc;
	rc = postgres_write(store, run_writer, &s);
	if (rc == RC_OK && (s.did & TX_WORK) != 0)
		store_news_made(store->base.news);
	return rc;
}
