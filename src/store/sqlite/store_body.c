/*
 * See store_body.h.
 */
#include "config.h"

#include <stdlib.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "uuid.h"
#include "store_impl.h"
#include "store_body.h"

/*
 * A large transaction that fails for lack of space leaves the log as long as it
 * grew, and then small ones fail too.  The body needs room in the log and again
 * in the database, and so does what is in the log already, in the database.
 */
enum rc
store_body_room(struct db *db, size_t body)
{
	const uint64_t more = 2 * ((uint64_t)body + body / 8) + WRITE_ROOM;

	if (body < STORE_LARGE || db_log_fits(db, more))
		return RC_OK;
	log_event(LOG_ERROR, "store-error", NULL,
	    LOG_S("database", db_file(db)),
	    LOG_S("message", "no room for a large body"), LOG_I("bytes", body),
	    LOG_I("free", db_room(db)));
	return RC_FULL;
}

enum rc
store_body_run(struct db *db, enum query query, int64_t id)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "i", id);
	return db_step_done(s);
}

static enum rc
delete_pieces(struct db *db, int64_t number)
{
	return store_body_run(db, QUERY_DELETE_PIECES, number);
}

static enum rc
delete_answer(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_ANSWER_PIECES);
	int64_t pieces;
	enum rc rc;

	db_bindf(s, "i", id);
	rc = db_onef(s, "i", &pieces);
	if (rc == RC_NOTFOUND)
		return delete_pieces(db, id);
	if (rc == RC_OK)
		rc = store_body_run(db, QUERY_DELETE_ANSWER, id);
	return rc == RC_OK ? delete_pieces(db, pieces) : rc;
}

enum rc
store_body_count(struct db *db, int64_t bytes)
{
	return bytes != 0 ? store_body_run(db, QUERY_KEPT_ADD, bytes) : RC_OK;
}

/* --- requests ------------------------------------------------------------- */

enum rc
store_body_delete_request(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_REQUEST_SIZE);
	int64_t bytes, pieces;
	enum rc rc;

	db_bindf(s, "i", id);
	rc = db_onef(s, "ii", &bytes, &pieces);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = store_body_run(db, QUERY_DELETE_REQUEST, id);
	if (rc == RC_OK && pieces != 0)
		rc = delete_pieces(db, pieces);
	return rc == RC_OK ? store_body_count(db, -bytes) : rc;
}

/* --- all of it ------------------------------------------------------------ */

enum rc
store_body_delete_all(struct db *db, int64_t id)
{
	enum rc rc;

	if ((rc = store_body_run(db, QUERY_DELETE_DELIVERED, id)) != RC_OK ||
	    (rc = store_body_run(db, QUERY_DELETE_REFUSED, id)) != RC_OK ||
	    (rc = delete_answer(db, id)) != RC_OK)
		return rc;
	return store_body_delete_request(db, id);
}

/* --- large bodies: storing ------------------------------------------------ */

void
store_body_init(
    struct store_body *b, struct store *store, int64_t key, uint64_t bytes)
{
	struct liveness *liveness;

	b->id = key;
	b->bytes = bytes;
	b->owner = 0;
	b->stored = 0;
	b->begun = clock_mono();
	if (b->length <= STORE_PIECE ||
	    sqlite_liveness(store, &liveness) != RC_OK)
		return;
	b->owner = liveness_self(liveness);
	b->id = -1 - (int64_t)uuid_bits() * 8192 - uuid_bits() % 8192;
}

static enum rc
body_write_piece(const struct store_body *b, struct db *db, size_t at)
{
	struct db_stmt *s = db_stmt(db, QUERY_PIECE_NEW);
	size_t n = b->length - at;
	enum rc rc;

	if (n > STORE_PIECE)
		n = STORE_PIECE;
	db_bindf(s, "iib", b->id, 1 + (int64_t)(at / STORE_PIECE),
	    (const char *)b->data + at, n);
	rc = db_step_done(s);
	FAULT(PIECE_WRITTEN);
	return rc;
}

enum rc
store_body_begin(const struct store_body *b, struct db *db)
{
	struct db_stmt *s;
	enum rc rc = store_body_room(db, b->length);

	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_UNNAMED_NEW);
	db_bindf(s, "iii", b->id, b->owner, (int64_t)b->bytes);
	rc = db_step_done(s);
	if (rc == RC_OK)
		rc = store_body_count(db, (int64_t)b->bytes);
	return rc == RC_OK ? body_write_piece(b, db, 0) : rc;
}

static enum rc
body_piece_run(struct write *w, struct db *db, int64_t now)
{
	const struct store_body *b = (struct store_body *)w;
	enum rc rc;

	(void)now;
	if (b->stored == 0)
		return store_body_begin(b, db);
	rc = store_body_room(db, b->length - b->stored);
	return rc == RC_OK ? body_write_piece(b, db, b->stored) : rc;
}

enum rc
store_body_store(struct store_body *b, struct store *store)
{
	enum rc rc = RC_OK;

	b->w = (struct write){ .run = body_piece_run, .flags = WRITE_LARGE };
	while (b->id < 0 && b->length - b->stored > STORE_PIECE) {
		rc = committer_do(store->committer, &b->w);
		if (rc != RC_OK)
			break;
		b->stored += STORE_PIECE;
		FAULT(PIECE_STORED);
	}
	return rc;
}

/* Whether all pieces are there, as many bytes as the body has. */
static enum rc
body_check(const struct store_body *b, struct db *db)
{
	struct db_stmt *s = db_stmt(db, QUERY_PIECE_SUM);
	int64_t n, bytes;
	enum rc rc;

	db_bindf(s, "i", b->id);
	rc = db_onef(s, "ii", &n, &bytes);
	if (rc == RC_OK &&
	    (n != (int64_t)((b->length + STORE_PIECE - 1) / STORE_PIECE) ||
		bytes != (int64_t)b->length))
		rc = RC_CORRUPT;
	return rc;
}

enum rc
store_body_use(const struct store_body *b, struct db *db)
{
	size_t at = b->stored;
	enum rc rc = store_body_room(db, b->length - at);

	if (rc == RC_OK && at == 0)
		rc = delete_pieces(db, b->id);
	for (; rc == RC_OK && at < b->length; at += STORE_PIECE)
		rc = body_write_piece(b, db, at);
	if (rc == RC_OK)
		rc = body_check(b, db);
	if (rc == RC_OK && b->id < 0)
		rc = store_body_run(db, QUERY_UNNAMED_DELETE, b->id);
	return rc;
}

/* --- large bodies: deleting ----------------------------------------------- */

static enum rc
body_drop(struct db *db, int64_t id, int64_t bytes)
{
	enum rc rc = delete_pieces(db, id);

	if (rc == RC_OK)
		rc = store_body_run(db, QUERY_UNNAMED_DELETE, id);
	return rc == RC_OK ? store_body_count(db, -bytes) : rc;
}

enum rc
store_body_drop(const struct store_body *b, struct db *db)
{
	return body_drop(db, b->id, (int64_t)b->bytes);
}

static enum rc
body_drop_run(struct write *w, struct db *db, int64_t now)
{
	const int64_t id = ((struct store_body *)w)->id;
	struct db_stmt *s = db_stmt(db, QUERY_UNNAMED_FIND);
	int64_t bytes;
	enum rc rc;

	(void)now;
	db_bindf(s, "i", id);
	rc = db_onef(s, "i", &bytes);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	return body_drop(db, id, bytes);
}

static void
body_left(struct write *w)
{
	free(w);
}

/* It is never given up, because what a living process leaves behind stays until
 * that process ends. */
void
store_body_discard(struct store_body *b, struct store *store)
{
	b->w = (struct write){ .run = body_drop_run,
		.left = body_left,
		.flags = WRITE_FINISHES,
		.since = b->begun };
	if (b->stored == 0 ||
	    committer_do(store->committer, &b->w) != RC_PENDING)
		free(b);
}

/* --- large bodies: recovering --------------------------------------------- */

/* Moves *b to the next pieces, by owner and number. */
static enum rc
body_next(struct store *store, struct store_body *b)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_UNNAMED_OWNER);
	db_bindf(s, "ii", b->owner, b->id);
	rc = db_onef(s, "ii", &b->owner, &b->id);
	store_reader_give(store, reader);
	return rc;
}

enum rc
store_body_recover(struct store *store)
{
	struct store_body b = { .w.run = body_drop_run };
	enum rc rc;

	/* A damaged row is passed by, and may be in the index alone. */
	while ((rc = body_next(store, &b)) == RC_OK) {
		if (sqlite_owner_may_be_gone(store, b.owner))
			rc = committer_do(store->committer, &b.w);
		if (rc == RC_CORRUPT)
			rows_bad(store->base.file, "once_unnamed", b.id);
		else if (rc != RC_OK)
			return rc;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
