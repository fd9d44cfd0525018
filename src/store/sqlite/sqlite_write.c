/*
 * Runs transactions: those of tx.h, and those of store_admit.h and
 * store_outcome.h, which may have a large body: see store_body.h.
 */
#include "config.h"

#include <stdlib.h>

#include "fault.h"
#include "rows.h"
#include "log.h"
#include "store_admit.h"
#include "store_body.h"
#include "store_call.h"
#include "store_impl.h"
#include "store_outcome.h"

/* --- recent keys ---------------------------------------------------------- */

/*
 * So many of the last keys stay recent, and usually have ended when they no
 * longer are.  Twice as many may be recent, so that one commit of so many
 * enters keys in the indexes.
 */
#define RECENT 64

/* So many keys are entered by one transaction, because other writes wait for
 * it.  There are more only if a foreign program has inserted rows. */
#define RECENT_MOST 4096

/*
 * Recent keys are the last ones, which are in no index of owners or of age (see
 * once_meta in schema.sql).  If they are many, enters those that are no longer
 * recent in the indexes, in the open transaction.  newest: the highest number
 * of a key; recent: that of once_meta.  RC_CORRUPT and RC_IO: perhaps a row
 * cannot be read or changed; then the mark stays.
 */
static enum rc
list_keys(struct db *db, int64_t newest, int64_t recent)
{
	int64_t end = newest - RECENT;
	struct db_stmt *s;
	enum rc rc;

	if (recent > end - RECENT)
		return RC_OK;
	s = db_stmt(db, QUERY_RECENT_PART);
	db_bindf(s, "ii", end, (int64_t)RECENT_MOST);
	if ((rc = db_onef(s, "i", &end)) != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_RECENT_LIST);
	db_bindf(s, "i", end);
	if ((rc = db_step_done(s)) != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_RECENT_END);
	db_bindf(s, "i", end);
	return db_step_done(s);
}

/* The same where the next new key would do that, because perhaps there is none
 * for long; reads both numbers. */
static enum rc
list_recent(struct db *db)
{
	int64_t newest, recent;
	enum rc rc =
	    db_onef(db_stmt(db, QUERY_RECENT_NOW), "ii", &newest, &recent);

	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	return list_keys(db, newest, recent - 1);
}

/* --- any transaction ------------------------------------------------------ */

static void
begin_in(struct sqlite_tx *t, const struct write *w, struct db *db, int64_t now)
{
	sqlite_tx_begin(t, db, now);
	t->leaves = (w->did & WRITE_DAMAGED) != 0;
}

struct tx_write {
	struct write w;
	tx_body *body;
	void *arg;
	unsigned how;
};

static enum rc
tx_write_run(struct write *w, struct db *db, int64_t now)
{
	const struct tx_write *x = (struct tx_write *)w;
	struct sqlite_tx t;
	enum rc rc = RC_OK;

	begin_in(&t, w, db, now);
	if ((x->how & TX_SEARCHES) != 0)
		rc = list_recent(db);
	if (rc == RC_OK)
		rc = x->body(&t.tx, x->arg);
	sqlite_tx_end(&t);
	w->did |= t.tx.did;
	return rc;
}

static enum rc
tx_read(struct store *store, unsigned how, tx_body *body, void *arg)
{
	struct store_reader *reader;
	struct sqlite_tx t;
	enum rc rc = (how & TX_READ) != 0 ? store_reader_begin(store, &reader)
					  : store_reader_take(store, &reader);

	if (rc != RC_OK)
		return rc;
	sqlite_tx_begin(&t, reader->db, store_now(store));
	rc = store_reader_after(store, reader, body(&t.tx, arg));
	sqlite_tx_end(&t);
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_tx(struct store *store, unsigned how, tx_body *body, void *arg)
{
	struct tx_write x = {
		.w.run = tx_write_run,
		.w.flags = ((how & TX_BEGINS) != 0 ? WRITE_NEW : 0) |
		    ((how & TX_REFUSABLE) != 0 ? WRITE_REFUSABLE : 0) |
		    ((how & TX_WHOLE) == 0 ? WRITE_LEAVES : 0),
		.body = body,
		.arg = arg,
		.how = how,
	};

	return (how & TX_WRITE) != 0 ? committer_do(store->committer, &x.w)
				     : tx_read(store, how, body, arg);
}

/* --- calls of a loop: see store_call.h and committer_submit() ------------- */

enum rc
sqlite_call_open(struct store *store)
{
	return store->glancer == NULL ? store_reader_glancer(store) : RC_OK;
}

static void
call_told(struct loop_message *m)
{
	struct write *w = OWNER(m, struct write, message);
	struct store_call *call = w->caller;

	loop_clear(w->loop, &call->late);
	call->rc = call->result(call, w->rc);
	store_call_ended(call);
}

static void
call_late(struct loop_timer *t)
{
	struct store_call *call = OWNER(t, struct store_call, late);
	struct committer *c = call->store->committer;
	int64_t until;
	enum rc rc;

	if (committer_late(c, call->write, &until, &rc)) {
		loop_set(call->store->base.loop, t, until);
		return;
	}
	call->rc = call->result(call, rc);
	store_call_ended(call);
}

/* Submits the write of a call: see sqlite_call_admit(). */
static bool
call_submit(struct store *store, struct store_call *call, struct write *w)
{
	int64_t until;
	enum rc rc;

	w->message.come = call_told;
	w->caller = call;
	call->write = w;
	call->late = (struct loop_timer){ .due = call_late };
	rc = committer_submit(store->committer, w, store->base.loop, &until);
	if (rc == RC_OK) {
		loop_set(store->base.loop, &call->late, until);
		return false;
	}
	call->rc = call->result(call, rc);
	return true;
}

/* --- requests ------------------------------------------------------------- */

struct admit_write {
	struct write w; /* first */
	struct store_admit *admit;
};

struct sqlite_admission {
	struct store_admission a; /* first: see store_call_admit() */
	struct admit_write x;
};

/* The bytes of the database that are in use. */
static enum rc
used_bytes(struct db *db, int64_t *bytes)
{
	enum rc rc = db_onef(db_stmt(db, QUERY_STORE_BYTES), "i", bytes);

	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

static enum rc
admit_run(struct write *w, struct db *db, int64_t now)
{
	struct store_admit *p = ((struct admit_write *)w)->admit;
	struct sqlite_tx t;
	enum rc rc = RC_OK;

	p->spec = 0;
	/* What it stores in parts is counted, and was admitted, before. */
	if (p->what->max_store != 0 &&
	    (p->body == NULL || p->body->stored == 0))
		rc = used_bytes(db, &p->used);
	if (rc != RC_OK)
		return rc;
	begin_in(&t, w, db, now);
	store_admit_ask(&t.tx, p);
	rc = store_admit_take(&t.tx, p);
	sqlite_tx_end(&t);
	if (rc == RC_OK && p->is_new)
		rc = list_keys(db, p->taken.id, p->seen.recent);
	w->did |= t.tx.did;
	return rc;
}

/* Prepares for storing the request. */
static enum rc
admit_body(struct store *store, struct store_admit *p)
{
	const struct store_reservation *what = p->what;

	p->more =
	    p->keep ? (uint64_t)what->environment_len + what->body_len : 0;
	if (!p->keep || what->body_len <= STORE_PIECE)
		return RC_OK;
	if ((p->body = calloc(1, sizeof(*p->body))) == NULL)
		return RC_NOMEM;
	p->body->data = what->body;
	p->body->length = what->body_len;
	store_body_init(p->body, store, 0, p->more);
	return RC_OK;
}

static void
admit_write_init(struct admit_write *x, struct store_admit *p)
{
	*x = (struct admit_write){ .w.run = admit_run,
		.w.flags = WRITE_NEW | WRITE_REFUSABLE,
		.admit = p };
	if (p->keep && p->what->body_len >= STORE_LARGE)
		x->w.flags |= WRITE_LARGE;
}

static enum rc
admit_whole(struct store *store, struct store_admit *p)
{
	struct admit_write x;
	enum rc rc;

	admit_write_init(&x, p);
	rc = committer_do(store->committer, &x.w);
	if (rc != RC_OK || !p->part)
		return rc;
	/* It was admitted when it was new. */
	x.w.flags &= ~(unsigned)WRITE_NEW;
	p->body->stored = STORE_PIECE;
	p->more = 0;
	FAULT(PIECE_STORED);
	rc = store_body_store(p->body, store);
	return rc == RC_OK ? committer_do(store->committer, &x.w) : rc;
}

static enum rc
admit_begin(struct store *store, struct store_admit *p)
{
	struct liveness *liveness;
	enum rc rc = sqlite_liveness(store, &liveness);

	if (rc == RC_OK)
		rc = admit_body(store, p);
	if (rc != RC_OK)
		return rc;
	p->secret = store->base.secret;
	p->owner = liveness_self(liveness);
	p->number = sqlite_number(store, &p->what->identity).first;
	return RC_OK;
}

static enum rc
admit_end(struct store *store, struct store_admit *p, enum rc rc)
{
	atomic_store(&store->damaged, rc == RC_CORRUPT);
	if (p->body != NULL && rc == RC_OK && p->changed)
		p->body->stored = 0; /* the key names it */
	if (p->body != NULL)
		store_body_discard(p->body, store);
	p->body = NULL;
	return rc;
}

enum rc
sqlite_admit_do(struct store *store, struct store_admit *p)
{
	enum rc rc = admit_begin(store, p);

	return rc == RC_OK ? admit_end(store, p, admit_whole(store, p)) : rc;
}

static enum rc
admit_result(struct store_call *call, enum rc rc)
{
	return admit_end(call->store, &call->of.admission->admit, rc);
}

bool
sqlite_call_admit(struct store *store, struct store_call *call)
{
	struct sqlite_admission *a =
	    (struct sqlite_admission *)(void *)call->of.admission;

	if ((call->rc = admit_begin(store, &a->a.admit)) != RC_OK)
		return true;
	admit_write_init(&a->x, &a->a.admit);
	call->result = admit_result;
	return call_submit(store, call, &a->x.w);
}

/* --- outcomes ------------------------------------------------------------- */

struct outcome_write {
	struct outcome_change change; /* first: see store_outcome_new() */
	struct write w;
	struct store_body body;
	bool lost; /* the last run lost, and deleted what was stored */
};

static struct outcome_write *
outcome_of(struct write *w)
{
	return OWNER(w, struct outcome_write, w);
}

static void
outcome_left(struct write *w)
{
	struct outcome_write *o = outcome_of(w);
	struct store_outcome *outcome = &o->change.outcome;

	if (w->rc == RC_IO) /* else it is tried again: the process ends */
		log_event(LOG_ERROR, "outcome-lost", &outcome->log,
		    LOG_I("id", o->change.id));
	else
		log_event(w->rc == RC_OK ? LOG_INFO : LOG_ERROR,
		    "late-settlement", &outcome->log, LOG_I("id", o->change.id),
		    LOG_S("result", rc_text(o->lost ? RC_LOST : w->rc)));
	store_outcome_free(outcome);
}

static enum rc
outcome_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = outcome_of(w);
	struct sqlite_tx t;
	enum rc rc;

	if ((w->did & WRITE_NO_ROOM) != 0)
		store_outcome_drop(&o->change.outcome, o->change.id);
	o->lost = false;
	begin_in(&t, w, db, now);
	rc = o->change.run(&t.tx, &o->change);
	sqlite_tx_end(&t);
	w->did |= t.tx.did;
	if (rc ==
	    RC_CORRUPT) /* perhaps pieces have gone: the next run writes all */
		o->body.stored = 0;
	/* What a lost run changes is rolled back.  So this one is not lost. */
	if (rc == RC_LOST && o->body.stored > 0) {
		o->lost = true;
		rc = store_body_drop(&o->body, db);
	}
	return rc;
}

static struct outcome_write *
outcome_write_begin(struct store *store, struct outcome_change *change)
{
	struct outcome_write *o = (struct outcome_write *)(void *)change;
	const struct response *r = &change->outcome.response;
	const size_t length = change->outcome.keep ? r->body_len : 0;

	o->w = (struct write){
		.run = outcome_run,
		.left = outcome_left,
		.flags = WRITE_FINISHES | WRITE_LEAVES |
		    (length >= STORE_LARGE ? WRITE_LARGE : 0),
	};
	change->body = &o->body;
	o->lost = false;
	o->body.data = r->body;
	o->body.length = length;
	store_body_init(&o->body, store, change->id, 0);
	return o;
}

/* With RC_PENDING it is the committer's. */
static enum rc
outcome_write_end(
    const struct outcome_write *o, enum rc rc, struct store_outcome **outcome)
{
	if (rc == RC_PENDING)
		*outcome = NULL;
	return rc == RC_OK && o->lost ? RC_LOST : rc;
}

enum rc
sqlite_outcome_do(struct store *store, struct outcome_change *change,
    struct store_outcome **outcome)
{
	struct outcome_write *o = outcome_write_begin(store, change);

	if (store_body_store(&o->body, store) != RC_OK)
		o->w.since = o->body.w.queued_at;
	return outcome_write_end(
	    o, committer_do(store->committer, &o->w), outcome);
}

static enum rc
outcome_result(struct store_call *call, enum rc rc)
{
	return outcome_write_end(
	    outcome_of(call->write), rc, call->of.finish.outcome);
}

bool
sqlite_call_outcome(
    struct store *store, struct store_call *call, struct outcome_change *change)
{
	call->result = outcome_result;
	return call_submit(store, call, &outcome_write_begin(store, change)->w);
}

/* --- the kind of store ---------------------------------------------------- */

const struct store_ops sqlite_ops = {
#define X(type, name, parameters, arguments) .name = sqlite_##name,
	STORE_OPS(X)
#undef X
	    .close = sqlite_close,
	.outcome_size = sizeof(struct outcome_write),
	.admission_size = sizeof(struct sqlite_admission),
};
