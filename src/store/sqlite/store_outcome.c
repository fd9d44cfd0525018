/*
 * See store_outcome.h.
 */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "committer.h"
#include "fault.h"
#include "log.h"
#include "sqlite.h"
#include "store_kept.h"
#include "store_record.h"
#include "store_outcome.h"

static struct outcome_write *
write_of(struct store_outcome *outcome)
{
	return (struct outcome_write *)(void *)((char *)outcome -
	    offsetof(struct outcome_write, outcome));
}

struct store_outcome *
sqlite_outcome_new(struct store *store)
{
	struct outcome_write *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->outcome.store = store;
	response_init(&o->outcome.response);
	o->outcome.requeue = -1;
	return &o->outcome;
}

void
sqlite_outcome_free(struct store_outcome *outcome)
{
	response_free(&outcome->response);
	spool_free(outcome->body);
	log_request_clear(&outcome->log);
	free(write_of(outcome));
}

static void
left(struct write *w)
{
	struct outcome_write *o = (struct outcome_write *)w;

	log_event(w->rc == RC_OK ? LOG_INFO : LOG_ERROR, "late-settlement",
	    &o->outcome.log, LOG_I("id", o->id),
	    LOG_S("result", rc_text(o->lost ? RC_LOST : w->rc)));
	sqlite_outcome_free(&o->outcome);
}

struct outcome_write *
store_outcome_write(struct store_outcome *outcome,
    enum rc (*run)(struct write *, struct db *, int64_t now), int64_t id)
{
	struct outcome_write *o = write_of(outcome);

	o->w.run = run;
	o->w.left = left;
	o->w.flags = WRITE_FINISHES;
	o->w.did = 0;
	o->id = id;
	o->stored = o->written = 0;
	memset(&o->stage, 0, sizeof(o->stage));
	o->lost = false;
	return o;
}

enum rc
store_outcome_do(struct committer *committer, struct outcome_write *o,
    struct store_outcome **outcome)
{
	enum rc rc = committer_do(committer, &o->w);

	if (rc == RC_PENDING)
		*outcome = NULL;
	return rc;
}

void
store_outcome_begin_run(struct outcome_write *o)
{
	if ((o->w.did & WRITE_NO_ROOM) != 0)
		kept_drop(&o->outcome, o->id);
	if ((o->w.did & WRITE_GOES_ON) != 0)
		o->stored = o->written;
	o->written = o->stored;
	store_stage_begin_run(&o->stage, &o->w);
	o->lost = false;
}

/* --- large responses ------------------------------------------------------ */

/* Writes the next piece; RC_FULL if the disk has no room for the rest. */
static enum rc
outcome_write_piece(struct outcome_write *o, struct db *db)
{
	const struct response *r = &o->outcome.response;
	size_t n = r->body_len - o->written;
	struct db_stmt *s;
	enum rc rc;

	if (o->written == 0 &&
	    (rc = store_kept_delete_pieces(db, o->id)) != RC_OK)
		return rc;
	if ((rc = store_kept_room(db, n)) != RC_OK)
		return rc;
	if (n > STORE_PIECE)
		n = STORE_PIECE;
	s = db_stmt(db, QUERY_PIECE_NEW);
	db_bindf(s, "iib", o->id, 1 + (int64_t)(o->written / STORE_PIECE),
	    (const char *)r->body + o->written, n);
	rc = db_step_done(s);
	o->written += n;
	FAULT(PIECE_WRITTEN);
	return rc;
}

bool
store_outcome_has_more(const struct outcome_write *o)
{
	struct kept_columns c;

	kept_columns(&o->outcome, &c);
	if (store_stage_is_large(&o->stage))
		return c.apart && store_stage_has_more(&o->stage);
	return c.apart && (size_t)c.length - o->stored > STORE_PIECE;
}

enum rc
store_outcome_piece(struct outcome_write *o, struct db *db)
{
	enum rc rc;

	if (store_stage_is_large(&o->stage))
		return store_stage_piece(&o->stage, &o->w, db);
	rc = outcome_write_piece(o, db);
	if (rc == RC_OK)
		o->w.did |= WRITE_MORE;
	return rc;
}

/* Writes the rest, and checks that all pieces are there. */
static enum rc
write_rest(struct outcome_write *o, struct db *db)
{
	const size_t all = o->outcome.response.body_len;
	struct db_stmt *s;
	int64_t n, bytes;
	enum rc rc = RC_OK;

	while (o->written < all && rc == RC_OK)
		rc = outcome_write_piece(o, db);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_PIECE_SUM);
	db_bindf(s, "i", o->id);
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
	db_bindf(s, "ii", o->id, pieces);
	return db_step_done(s);
}

/* Writes the rest of the body, and deletes pieces that are not needed. */
static enum rc
write_body(struct outcome_write *o, struct db *db, const struct kept_columns *c)
{
	if (store_stage_is_large(&o->stage))
		return c->apart           ? outcome_use_stage(o, db)
		    : o->stage.stored > 0 ? store_stage_drop(&o->stage, db)
					  : RC_OK;
	if (c->apart)
		return write_rest(o, db);
	return o->stored > 0 ? store_kept_delete_pieces(db, o->id) : RC_OK;
}

struct step_answer
store_outcome_answer(const struct kept_columns *c)
{
	return (struct step_answer){
		.keep = c->keep,
		.status = c->status,
		.length = c->length,
	};
}

enum rc
store_outcome_change(struct outcome_write *o, struct db *db,
    const struct record *was, const struct record *r, const struct step *s)
{
	struct kept_columns c;
	enum rc rc;

	kept_columns(&o->outcome, &c);
	rc = store_record_write(db, was, r, s, &c);
	if (rc == RC_OK && s->answer == STEP_SET)
		rc = write_body(o, db, &c);
	else if (rc == RC_OK && s->confirmed)
		rc = store_kept_delete_pieces(db, o->id);
	if (s->ended)
		o->w.did |= WRITE_ENDED_KEY;
	if (s->work)
		o->w.did |= WRITE_MADE_WORK;
	if (s->confirmed)
		o->w.did |= WRITE_SYNC_FIRST;
	return rc;
}
