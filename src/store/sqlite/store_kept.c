/*
 * See store_kept.h.
 */
#include "config.h"

#include "log.h"
#include "committer.h"
#include "store_kept.h"

/*
 * A large transaction that fails for lack of space leaves the log as long as it
 * grew, and then small ones fail too.  The body needs room in the log and again
 * in the database, and so does what is in the log already, in the database.
 */
enum rc
store_kept_room(struct db *db, size_t body)
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
store_kept_run(struct db *db, enum query query, int64_t id)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "i", id);
	return db_step_done(s);
}

enum rc
store_kept_delete_pieces(struct db *db, int64_t id)
{
	return store_kept_run(db, QUERY_DELETE_PIECES, id);
}

enum rc
store_kept_answer(struct db *db, int64_t id, int64_t *pieces)
{
	struct db_stmt *s = db_stmt(db, QUERY_ANSWER_PIECES);
	enum rc rc;

	db_bindf(s, "i", id);
	rc = db_onef(s, "i", pieces);
	if (rc != RC_NOTFOUND)
		return rc;
	*pieces = id;
	return RC_OK;
}

static enum rc
delete_answer(struct db *db, int64_t id)
{
	int64_t pieces;
	enum rc rc = store_kept_answer(db, id, &pieces);

	if (rc == RC_OK && pieces != id)
		rc = store_kept_run(db, QUERY_DELETE_ANSWER, id);
	return rc == RC_OK ? store_kept_delete_pieces(db, pieces) : rc;
}

enum rc
store_kept_count(struct db *db, int64_t bytes)
{
	return bytes != 0 ? store_kept_run(db, QUERY_KEPT_ADD, bytes) : RC_OK;
}

/* --- requests ------------------------------------------------------------- */

enum rc
store_kept_find_request(
    struct db *db, int64_t id, int64_t *bytes, int64_t *pieces)
{
	struct db_stmt *s = db_stmt(db, QUERY_REQUEST_BYTES);

	db_bindf(s, "i", id);
	return db_onef(s, "ii", bytes, pieces);
}

enum rc
store_kept_delete_request(struct db *db, int64_t id)
{
	int64_t bytes, pieces;
	enum rc rc;

	rc = store_kept_find_request(db, id, &bytes, &pieces);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = store_kept_run(db, QUERY_DELETE_REQUEST, id);
	if (rc == RC_OK && pieces != 0)
		rc = store_kept_delete_pieces(db, pieces);
	return rc == RC_OK ? store_kept_count(db, -bytes) : rc;
}

enum rc
store_used_bytes(struct db *db, int64_t *bytes)
{
	enum rc rc = db_onef(db_stmt(db, QUERY_STORE_BYTES), "i", bytes);

	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* --- all of it ------------------------------------------------------------ */

enum rc
store_kept_delete(struct db *db, int64_t id)
{
	enum rc rc;

	if ((rc = store_kept_run(db, QUERY_DELETE_DELIVERED, id)) != RC_OK ||
	    (rc = store_kept_run(db, QUERY_DELETE_BODY, id)) != RC_OK ||
	    (rc = store_kept_run(db, QUERY_DELETE_REFUSED, id)) != RC_OK ||
	    (rc = delete_answer(db, id)) != RC_OK)
		return rc;
	return store_kept_delete_request(db, id);
}
