/*
 * Records outcomes: see store_outcome.h.  A large answer is written in pieces,
 * in transactions together with other writes.  The transaction that completes
 * the key writes the last piece, and its sync makes the earlier commits durable
 * too.
 *
 * The pieces of an attempt have the number of its key, because nothing else
 * settles a key that has a lease.  Without a lease the first one to settle the
 * key wins, however many pieces the others have stored.  So these are staged:
 * see store_stage.h.
 */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "committer.h"
#include "fault.h"
#include "log.h"
#include "kept.h"
#include "sqlite.h"
#include "sqlite_tx.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_stage.h"
#include "sqlite_outcome.h"

struct outcome_write {
	struct write w;
	struct outcome_change change;
	struct stage stage; /* of a large answer to a key without a lease */
	bool lost;          /* the last run lost, and deleted what was staged */
	/* with a lease: bytes of the body in pieces: committed; including the
	 * last run */
	size_t stored, written;
};

static struct outcome_write *
write_of(struct outcome_change *change)
{
	return (struct outcome_write *)(void *)((char *)change -
	    offsetof(struct outcome_write, change));
}

struct store_outcome *
sqlite_outcome_new(struct store *store)
{
	struct outcome_write *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	store_outcome_init(&o->change, store);
	return &o->change.outcome;
}

void
sqlite_outcome_free(struct store_outcome *outcome)
{
	struct outcome_change *change =
	    (struct outcome_change *)(void *)outcome;

	store_outcome_clear(change);
	free(write_of(change));
}

/* --- large responses ------------------------------------------------------ */

/* Writes the next piece; RC_FULL if the disk has no room for the rest. */
static enum rc
outcome_write_piece(struct outcome_write *o, struct db *db)
{
	const struct response *r = &o->change.outcome.response;
	size_t n = r->body_len - o->written;
	struct db_stmt *s;
	enum rc rc;

	if (o->written == 0 &&
	    (rc = store_kept_delete_pieces(db, o->change.id)) != RC_OK)
		return rc;
	if ((rc = store_kept_room(db, n)) != RC_OK)
		return rc;
	if (n > STORE_PIECE)
		n = STORE_PIECE;
	s = db_stmt(db, QUERY_PIECE_NEW);
	db_bindf(s, "iib", o->change.id,
	    1 + (int64_t)(o->written / STORE_PIECE),
	    (const char *)r->body + o->written, n);
	rc = db_step_done(s);
	o->written += n;
	FAULT(PIECE_WRITTEN);
	return rc;
}

/* Writes the rest, and checks that all pieces are there. */
static enum rc
write_rest(struct outcome_write *o, struct db *db)
{
	const size_t all = o->change.outcome.response.body_len;
	struct db_stmt *s;
	int64_t n, bytes;
	enum rc rc = RC_OK;

	while (o->written < all && rc == RC_OK)
		rc = outcome_write_piece(o, db);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_PIECE_SUM);
	db_bindf(s, "i", o->change.id);
	rc = db_onef(s, "ii", &n, &bytes);
	if (rc == RC_OK &&
	    (n != (int64_t)((all + STORE_PIECE - 1) / STORE_PIECE) ||
		bytes != (int64_t)all)) {
		o->stored = 0; /* begin again */
		rc = RC_CORRUPT;
	}
	return rc;
}

/* The same of what is staged: the key names it from then on. */
static enum rc
outcome_use_stage(struct outcome_write *o, struct db *db)
{
	struct db_stmt *s;
	int64_t pieces;
	enum rc rc;

	rc = store_stage_use(&o->stage, db, &pieces);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_ANSWER_NEW);
	db_bindf(s, "ii", o->change.id, pieces);
	return db_step_done(s);
}

/* A run may only write a piece, and the next one goes on. */
static bool
outcome_has_more(const struct outcome_write *o)
{
	return store_stage_is_large(&o->stage)
	    ? store_stage_has_more(&o->stage)
	    : o->change.outcome.response.body_len - o->stored > STORE_PIECE;
}

static enum rc
outcome_piece(struct outcome_write *o, struct db *db)
{
	enum rc rc;

	if (store_stage_is_large(&o->stage))
		return store_stage_piece(&o->stage, &o->w, db);
	rc = outcome_write_piece(o, db);
	if (rc == RC_OK)
		o->w.did |= WRITE_MORE;
	return rc;
}

static enum rc
outcome_drop(struct outcome_write *o, struct db *db)
{
	return o->stage.stored > 0 ? store_stage_drop(&o->stage, db)
				   : store_kept_delete_pieces(db, o->change.id);
}

enum rc
sqlite_outcome_body(
    struct outcome_change *change, struct db *db, bool drop, bool *more)
{
	struct outcome_write *o = write_of(change);
	struct kept_columns c;

	kept_columns(&change->outcome, &c);
	if (drop || (!c.apart && o->stage.stored + o->stored > 0))
		return outcome_drop(o, db);
	if (!c.apart)
		return RC_OK;
	*more = outcome_has_more(o);
	if (*more)
		return outcome_piece(o, db);
	return store_stage_is_large(&o->stage) ? outcome_use_stage(o, db)
					       : write_rest(o, db);
}

/* --- the write ------------------------------------------------------------ */

static void
outcome_left(struct write *w)
{
	struct outcome_write *o = (struct outcome_write *)w;
	struct store_outcome *outcome = &o->change.outcome;

	log_event(w->rc == RC_OK ? LOG_INFO : LOG_ERROR, "late-settlement",
	    &outcome->log, LOG_I("id", o->change.id),
	    LOG_S("result", rc_text(o->lost ? RC_LOST : w->rc)));
	sqlite_outcome_free(outcome);
}

/* Prepares for what the runs before this one have done. */
static void
outcome_begin_run(struct outcome_write *o)
{
	if ((o->w.did & WRITE_NO_ROOM) != 0)
		kept_drop(&o->change.outcome, o->change.id);
	if ((o->w.did & WRITE_GOES_ON) != 0)
		o->stored = o->written;
	o->written = o->stored;
	store_stage_begin_run(&o->stage, &o->w);
	o->lost = false;
}

static enum rc
outcome_run(struct write *w, struct db *db, int64_t now)
{
	struct outcome_write *o = (struct outcome_write *)w;
	struct sqlite_tx t;
	enum rc rc;

	outcome_begin_run(o);
	sqlite_tx_begin(&t, db, now);
	rc = store_outcome_run(&t.tx, &o->change);
	sqlite_tx_end(&t);
	w->did |= sqlite_tx_did(&t);
	/* What a lost run changes is rolled back.  So this one is not lost. */
	if (rc == RC_LOST && o->stage.stored > 0) {
		o->lost = true;
		rc = store_stage_drop(&o->stage, db);
	}
	return rc;
}

enum rc
sqlite_outcome_do(struct store *store, struct outcome_change *change,
    struct store_outcome **outcome)
{
	struct outcome_write *o = write_of(change);
	const struct response *r = &change->outcome.response;
	enum rc rc;

	memset(&o->stage, 0, sizeof(o->stage));
	o->stored = o->written = 0;
	o->w.run = outcome_run;
	o->w.left = outcome_left;
	o->w.flags = WRITE_FINISHES;
	o->w.did = 0;
	if (change->outcome.keep && r->body_len >= STORE_LARGE)
		o->w.flags |= WRITE_LARGE;
	if (change->outcome.keep && change->token[0] == '\0' &&
	    (rc = store_stage_init_answer(
		 &o->stage, store, r->body, r->body_len)) != RC_OK)
		return rc;
	rc = committer_do(store->committer, &o->w);
	if (rc == RC_PENDING)
		*outcome = NULL;
	return rc == RC_OK && o->lost ? RC_LOST : rc;
}
