/*
 * The key store, for reconcilers, webhooks and operators, which find out what a
 * lost attempt did.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_operator.h"
#include "store_impl.h"
#include "store_row.h"

void
store_due_free(struct store_due *due)
{
	free(due->scope);
	free(due->path);
	free(due->key);
	free(due->recovery_point);
	memset(due, 0, sizeof(*due));
}

static enum rc
read_due(struct db_stmt *s, struct store_due *due)
{
	enum rc rc;

	due->id = db_column_int(s, 0);
	due->tries.attempt = (int)db_column_int(s, 4);
	due->tries.tries = (int)db_column_int(s, 7);
	due->attempt.fd = due->attempt.note = -1;
	due->attempt.lock = db_column_int(s, 8);
	due->attempt.file = db_column_int(s, 9);
	if (!store_row_copy(s, 6, due->downstream, sizeof(due->downstream)) ||
	    strlen(due->downstream) != RECORD_UUID_LEN ||
	    !store_row_is_identity(s, 1, 2, 3) || !store_row_is_count(s, 4) ||
	    db_column_text(s, 5) == NULL || !store_row_is_count(s, 7) ||
	    !store_row_is_time(s, 10))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 1, &due->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 2, &due->path)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &due->key)) == RC_OK)
		rc = db_column_strdup(s, 5, &due->recovery_point);
	return rc;
}

/* The longest due key of the first scope from that one on. */
static enum rc
due_from(struct db *db, int64_t now, const char *from, struct store_due *due)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECONCILE_DUE);
	enum rc rc;

	db_bind_int(s, 1, now);
	db_bind_text(s, 2, from);
	while ((rc = db_step_row(s)) == RC_OK &&
	    (rc = read_due(s, due)) == RC_CORRUPT) {
		store_row_bad(db, "once_key", due->id);
		store_due_free(due);
	}
	db_reset(s);
	return rc;
}

enum rc
store_due(struct store *store, const char *after, struct store_due *due)
{
	const int64_t now = store_now(store);
	struct store_reader *reader;
	struct db_stmt *s;
	char *from = NULL;
	int64_t due_at = 0;
	enum rc rc;

	memset(due, 0, sizeof(*due));
	/* No scope has a NUL, so no scope lies between. */
	if (after != NULL && asprintf(&from, "%s\001", after) == -1)
		return RC_NOMEM;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK) {
		free(from);
		return rc;
	}
	s = db_stmt(reader->db, QUERY_RECONCILE_FIRST);
	rc = db_step_row(s);
	if (rc == RC_OK && (due_at = db_column_int(s, 0)) > now)
		rc = RC_NOTFOUND;
	db_reset(s);
	if (rc == RC_OK) {
		rc = due_from(reader->db, now, from != NULL ? from : "", due);
		if (rc == RC_NOTFOUND && from != NULL)
			rc = due_from(reader->db, now, "", due);
	}
	store_reader_give(store, reader);
	free(from);
	if (rc != RC_OK)
		store_due_free(due);
	due->due_at = due_at;
	return rc;
}

enum rc
store_owner_gone(struct store *store, int64_t id, bool *gone)
{
	struct store_reader *reader;
	struct liveness *liveness;
	struct db_stmt *s;
	int64_t owner = 0;
	bool alive = true;
	enum rc rc;

	*gone = false;
	if ((rc = store_liveness(store, &liveness)) != RC_OK ||
	    (rc = store_reader_take(store, &reader)) != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_OWNER);
	db_bind_int(s, 1, id);
	rc = db_step_row(s);
	if (rc == RC_OK)
		owner = db_column_int(s, 0);
	db_reset(s);
	store_reader_give(store, reader);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = liveness_alive(liveness, owner, &alive);
	if (rc == RC_OK)
		*gone = !alive;
	return rc;
}

static enum rc
find_by(struct db *db, enum query query, const char *downstream, int64_t *id)
{
	struct db_stmt *s = db_stmt(db, query);
	enum rc rc;

	db_bind_text(s, 1, downstream);
	rc = db_step_row(s);
	if (rc == RC_OK)
		*id = db_column_int(s, 0);
	db_reset(s);
	return rc;
}

enum rc
store_find_downstream(struct store *store, const char *downstream, int64_t *id)
{
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = find_by(reader->db, QUERY_FIND_OPEN, downstream, id);
	if (rc == RC_NOTFOUND)
		rc = find_by(reader->db, QUERY_FIND_DOWNSTREAM, downstream, id);
	store_reader_give(store, reader);
	return rc;
}

static enum rc
read_request(struct db *db, struct db_stmt *s, struct buf *environment,
    struct spool **body)
{
	const void *text;
	size_t n, length;
	int64_t id;
	enum rc rc;

	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	id = db_column_int(s, 2);
	text = db_column_blob(s, 0, &n);
	length = db_column_length(s, 1);
	rc = buf_add(environment, text, n);
	db_reset(s);
	if (rc != RC_OK || length == 0)
		return rc;
	if ((*body = spool_new()) == NULL)
		return RC_NOMEM;
	return store_read_blob(db, "once_request", id, length, *body);
}

enum rc
store_request(struct store *store, const struct store_identity *who, int64_t id,
    struct buf *environment, struct spool **body)
{
	struct store_reader *reader;
	enum rc rc;

	*body = NULL;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	/* One transaction, so that both are of one state of the database. */
	rc = db_begin_read(reader->db);
	if (rc == RC_OK)
		rc = read_request(reader->db,
		    store_stmt_of(reader->db, QUERY_REQUEST, who, id),
		    environment, body);
	db_rollback(reader->db);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		spool_free(*body);
		*body = NULL;
		buf_clear(environment);
	}
	return rc;
}
