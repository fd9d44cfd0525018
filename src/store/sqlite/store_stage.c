/*
 * See store_stage.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "uuid.h"
#include "store_impl.h"
#include "store_kept.h"
#include "store_stage.h"

/* Deletes staged pieces.  It is never given up, because what a living process
 * leaves behind stays until that process ends. */
struct drop_write {
	struct write w;
	int64_t id;
};

bool
store_stage_is_large(const struct stage *st)
{
	return st->keep && st->length > STORE_PIECE;
}

/* --- dropping ------------------------------------------------------------- */

static enum rc
drop(struct db *db, int64_t id, int64_t bytes)
{
	enum rc rc = store_kept_delete_pieces(db, id);

	if (rc == RC_OK)
		rc = store_kept_run(db, QUERY_STAGE_DELETE, id);
	return rc == RC_OK ? store_kept_run(db, QUERY_KEPT_ADD, -bytes) : rc;
}

static enum rc
stage_drop_run(struct write *w, struct db *db, int64_t now)
{
	const int64_t id = ((struct drop_write *)w)->id;
	struct db_stmt *s = db_stmt(db, QUERY_STAGE_FIND);
	int64_t bytes;
	enum rc rc;

	(void)now;
	db_bindf(s, "i", id);
	rc = db_onef(s, "i", &bytes);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	return drop(db, id, bytes);
}

enum rc
store_stage_drop(struct stage *st, struct db *db)
{
	return drop(db, st->id, (int64_t)st->bytes);
}

static void
drop_left(struct write *w)
{
	free(w);
}

/* --- staging -------------------------------------------------------------- */

static enum rc
stage_number(struct stage *st, struct store *store)
{
	struct liveness *liveness;
	enum rc rc;

	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	st->owner = liveness_self(liveness);
	st->id = -1 - (int64_t)uuid_bits() * 8192 - uuid_bits() % 8192;
	return RC_OK;
}

enum rc
store_stage_init_answer(
    struct stage *st, struct store *store, const void *body, size_t length)
{
	memset(st, 0, sizeof(*st));
	st->keep = true;
	st->body = body;
	st->length = length;
	return store_stage_is_large(st) ? stage_number(st, store) : RC_OK;
}

enum rc
store_stage_init(struct stage *st, struct store *store,
    const struct store_reservation *what, bool keep)
{
	enum rc rc;

	memset(st, 0, sizeof(*st));
	st->what = what;
	st->identity = identity_number(&store->seed, &what->identity);
	st->keep = keep;
	st->body = what->body;
	st->length = what->body_len;
	st->bytes = (uint64_t)what->environment_len + what->body_len;
	if (!store_stage_is_large(st))
		return RC_OK;
	if ((rc = stage_number(st, store)) != RC_OK)
		return rc;
	if ((st->drop = calloc(1, sizeof(*st->drop))) == NULL)
		return RC_NOMEM;
	st->drop->w.run = stage_drop_run;
	st->drop->w.left = drop_left;
	st->drop->w.flags = WRITE_FINISHES;
	st->drop->id = st->id;
	return RC_OK;
}

void
store_stage_end(struct stage *st, struct store *store, enum rc rc)
{
	if (st->written > 0 && (rc != RC_OK || !st->used) &&
	    committer_do(store->committer, &st->drop->w) == RC_PENDING)
		st->drop = NULL;
	free(st->drop);
	st->drop = NULL;
}

unsigned
store_stage_flags(const struct stage *st)
{
	return st->keep && st->length >= STORE_LARGE ? WRITE_LARGE : 0;
}

void
store_stage_begin_run(struct stage *st, const struct write *w)
{
	if ((w->did & WRITE_GOES_ON) != 0)
		st->stored = st->written;
	st->written = st->stored;
	st->used = false;
}

bool
store_stage_has_more(const struct stage *st)
{
	return store_stage_is_large(st) &&
	    st->length - st->stored > STORE_PIECE;
}

static enum rc
stage_write_piece(struct stage *st, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_PIECE_NEW);
	size_t n = st->length - st->written;
	enum rc rc;

	if (n > STORE_PIECE)
		n = STORE_PIECE;
	db_bindf(s, "iib", st->id, 1 + (int64_t)(st->written / STORE_PIECE),
	    (const char *)st->body + st->written, n);
	rc = db_step_done(s);
	st->written += n;
	FAULT(PIECE_WRITTEN);
	return rc;
}

enum rc
store_stage_piece(struct stage *st, struct write *w, struct db *db)
{
	struct db_stmt *s;
	enum rc rc;

	rc = store_kept_room(db, st->length - st->stored);
	if (rc == RC_OK && st->stored == 0) {
		s = db_stmt(db, QUERY_STAGE_NEW);
		db_bindf(s, "iii", st->id, st->owner, (int64_t)st->bytes);
		rc = db_step_done(s);
		if (rc == RC_OK)
			rc = store_kept_delete_pieces(db, st->id);
		if (rc == RC_OK && st->bytes > 0)
			rc = store_kept_run(
			    db, QUERY_KEPT_ADD, (int64_t)st->bytes);
	}
	if (rc == RC_OK)
		rc = stage_write_piece(st, db);
	w->did |= WRITE_MORE;
	return rc;
}

uint64_t
store_stage_bytes(const struct stage *st)
{
	return st->keep && st->stored == 0 ? st->bytes : 0;
}

/* Whether all pieces are there, as many bytes as the body has. */
static enum rc
stage_check(const struct stage *st, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_PIECE_SUM);
	int64_t n, bytes;
	enum rc rc;

	db_bindf(s, "i", st->id);
	rc = db_onef(s, "ii", &n, &bytes);
	if (rc == RC_OK &&
	    (n != (int64_t)((st->length + STORE_PIECE - 1) / STORE_PIECE) ||
		bytes != (int64_t)st->length))
		rc = RC_CORRUPT;
	return rc;
}

enum rc
store_stage_use(struct stage *st, struct db *db, int64_t *pieces)
{
	struct db_stmt *s;
	enum rc rc;

	*pieces = 0;
	st->used = true;
	if ((rc = store_kept_room(db, st->length - st->stored)) != RC_OK)
		return rc;
	if (!store_stage_is_large(st))
		return store_kept_run(db, QUERY_KEPT_ADD, (int64_t)st->bytes);
	*pieces = st->id;
	rc = stage_write_piece(st, db);
	if (rc == RC_OK)
		rc = stage_check(st, db);
	if (rc == RC_OK) {
		s = db_stmt(db, QUERY_STAGE_DELETE);
		db_bindf(s, "i", st->id);
		rc = db_change_one(s, RC_CORRUPT);
	}
	if (rc == RC_CORRUPT)
		st->stored = 0;
	return rc;
}

/* --- recovering ----------------------------------------------------------- */

struct recover_stage_write {
	struct write w;
	int64_t owner; /* dead */
};

/* Deletes the pieces of one body in each run. */
static enum rc
recover_stage_run(struct write *w, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_STAGE_OF_OWNER);
	int64_t id, bytes;
	enum rc rc;

	(void)now;
	db_bindf(s, "i", ((struct recover_stage_write *)w)->owner);
	rc = db_onef(s, "ii", &id, &bytes);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	w->did |= WRITE_MORE;
	return drop(db, id, bytes);
}

/* The next owner in once_stage after *owner. */
static enum rc
stage_next_owner(struct store *store, int64_t *owner)
{
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_query(store, QUERY_STAGE_OWNER, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "i", *owner);
	rc = db_onef(reader->s, "i", owner);
	store_reader_give(store, reader);
	return rc;
}

enum rc
store_stage_recover(struct store *store)
{
	struct recover_stage_write r = { .w.run = recover_stage_run };
	enum rc rc;

	while ((rc = stage_next_owner(store, &r.owner)) == RC_OK)
		if (store_is_dead(store, r.owner) &&
		    (rc = committer_do(store->committer, &r.w)) != RC_OK)
			return rc;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
