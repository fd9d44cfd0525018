/*
 * What passes write: leases of the dead, keys past their retention, time.
 * Each is bounded, for others wait for the lock meanwhile.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "fault.h"
#include "store_ops.h"

static enum rc
read_change(
    struct db_stmt *s, struct store_change *c, char token[RECORD_TOKEN_LEN + 1])
{
	char *scope = NULL, *path = NULL, *key = NULL;
	enum rc rc;

	c->id = db_column_int(s, 0);
	c->from = RECORD_IN_PROGRESS;
	c->to = RECORD_UNKNOWN;
	if (!store_ops_copy(s, 1, token, RECORD_TOKEN_LEN + 1))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 2, &scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &path)) == RC_OK)
		rc = db_column_strdup(s, 4, &key);
	c->scope = scope;
	c->path = path;
	c->key = key;
	return rc;
}

/* One attempt at a time: the row that is read changes the index that it is
 * found by. */
static enum rc
sweep_one(struct op_sweep *op, struct db *db, int64_t owner)
{
	struct db_stmt *s = db_stmt(db, QUERY_SWEEP_ROW);
	char token[RECORD_TOKEN_LEN + 1];
	struct store_change *c = &op->changes[op->n];
	enum rc rc;

	db_bind_int(s, 1, owner);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	memset(c, 0, sizeof(*c));
	op->n++;
	rc = read_change(s, c, token);
	db_reset(s);
	if (rc == RC_OK)
		rc = store_ops_unknown(db, c->id, token, "oncewrap was lost");
	FAULT(SWEEP_KEY);
	return rc == RC_LOST ? RC_CORRUPT : rc;
}

enum rc
store_ops_sweep(struct op_sweep *op, struct db *db)
{
	enum rc rc = RC_OK;
	size_t i;

	store_changes_free(op->changes, op->n);
	op->n = 0;
	for (i = 0; i < op->ndead && op->n < op->limit; i++) {
		do
			rc = sweep_one(op, db, op->dead[i]);
		while (rc == RC_OK && op->n < op->limit);
		if (rc != RC_OK && rc != RC_NOTFOUND)
			return rc;
	}
	return RC_OK;
}

/* Gives some free pages at the end of the file back to the file system. */
static enum rc
give_back(struct db *db)
{
	int64_t unused, all;
	struct db_stmt *s;
	enum rc rc;

	s = db_stmt(db, QUERY_FREE_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	unused = db_column_int(s, 0);
	db_reset(s);
	s = db_stmt(db, QUERY_ALL_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	all = db_column_int(s, 0);
	db_reset(s);
	if (unused <= STORE_FREE_PAGES || unused <= all / 2)
		return RC_OK;
	s = db_stmt(db, QUERY_VACUUM_STEP);
	do
		rc = db_step_row(s);
	while (rc == RC_OK);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_ops_reap(struct op_reap *op, struct db *db, int64_t now)
{
	int64_t ids[STORE_REAP_ROWS], bytes = 0;
	struct db_stmt *s;
	enum rc rc;
	int n = 0, i;

	assert(op->limit <= STORE_REAP_ROWS);
	op->n = 0;
	s = db_stmt(db, QUERY_REAP_ROWS);
	db_bind_int(s, 1, now);
	db_bind_int(s, 2, op->limit);
	while ((rc = db_step_row(s)) == RC_OK && n < op->limit &&
	    bytes < STORE_REAP_BYTES) {
		ids[n++] = db_column_int(s, 0);
		bytes += db_column_int(s, 1);
	}
	db_reset(s);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	if (n == 0)
		return RC_OK;
	if ((rc = db_step_done(db_stmt(db, QUERY_REAP_MARK))) != RC_OK)
		return rc;
	for (i = 0; i < n; i++) {
		if ((rc = store_ops_delete_past(db, ids[i], now)) != RC_OK)
			return rc;
		FAULT(REAP_KEY);
	}
	op->n = n;
	return give_back(db);
}

enum rc
store_ops_clock(const struct op_clock *op, struct db *db, int64_t now)
{
	struct db_stmt *s;

	s = db_stmt(db, op->touch ? QUERY_CLOCK_TOUCH : QUERY_CLOCK_LAST);
	db_bind_int(s, 1, now);
	if (!op->touch)
		db_bind_int(s, 2, op->grain);
	return db_step_done(s);
}
