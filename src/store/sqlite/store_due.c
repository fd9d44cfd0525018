/*
 * The key store, for reconcilers, webhooks and operators, which find out what a
 * lost attempt did.
 */
#include "config.h"

#include <string.h>

#include "store_operator.h"
#include "store_impl.h"
#include "store_row.h"

/* The longest due key of the first caller after that one. */
static enum rc
due_after(struct db *db, int64_t now, int64_t after, struct record *due)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECONCILE_DUE);
	enum rc rc;

	db_bindf(s, "ii", now, after);
	rc = store_row_next(db, s, due);
	db_reset(s);
	return rc;
}

enum rc
sqlite_due(struct store *store, int64_t after, struct record *due)
{
	const int64_t now = sqlite_now(store);
	struct store_reader *reader;
	int64_t due_at = 0;
	enum rc rc;

	memset(due, 0, sizeof(*due));
	if ((rc = store_reader_take(store, &reader)) != RC_OK)
		return rc;
	rc = db_onef(db_stmt(reader->db, QUERY_RECONCILE_FIRST), "i", &due_at);
	if (rc == RC_OK && due_at > now)
		rc = RC_NOTFOUND;
	if (rc == RC_OK) {
		rc = due_after(reader->db, now, after, due);
		if (rc == RC_NOTFOUND)
			rc = due_after(reader->db, now, INT64_MIN, due);
	}
	store_reader_give(store, reader);
	if (rc == RC_NOTFOUND)
		due->reconcile_after = due_at;
	return rc;
}

static enum rc
read_request(struct db *db, struct db_stmt *s, struct buf *environment,
    struct spool **body)
{
	const void *text;
	int64_t id, length, pieces;
	size_t n;
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	rc = db_rowf(s, "bmii", &text, &n, &length, &id, &pieces);
	if (rc == RC_OK)
		rc = buf_add(environment, text, n);
	db_reset(s);
	if (rc != RC_OK || length == 0)
		return rc;
	if ((*body = spool_new()) == NULL)
		return RC_NOMEM;
	return pieces != 0
	    ? store_read_pieces(db, pieces, (size_t)length, *body)
	    : store_read_blob(db, "once_request", id, (size_t)length, *body);
}

enum rc
sqlite_request(struct store *store, const struct store_identity *identity,
    int64_t id, struct buf *environment, struct spool **body)
{
	struct store_reader *reader;
	enum rc rc;

	*body = NULL;
	rc = store_reader_begin(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = read_request(reader->db,
	    store_stmt_of(reader->db, QUERY_REQUEST, identity, id), environment,
	    body);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		spool_free(*body);
		*body = NULL;
		buf_clear(environment);
	}
	return rc;
}
