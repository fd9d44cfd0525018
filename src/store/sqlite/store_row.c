/*
 * See store_row.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"
#include "store_impl.h"
#include "store_row.h"

/* --- the readers ---------------------------------------------------------- */

static enum rc
row_read_key(struct db_stmt *s, bool identified, struct record *r)
{
	memset(r, 0, sizeof(*r));
	return rows_record_end(
	    r, identified, db_members(s, rows_record, rows_nrecord, r));
}

enum rc
store_row_read(struct db_stmt *s, struct record *r)
{
	return row_read_key(s, true, r);
}

enum rc
store_row_next(struct db *db, struct db_stmt *s, struct record *r)
{
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK &&
	    (rc = store_row_read(s, r)) == RC_CORRUPT)
		store_row_bad(db, "once_key", r->id);
	return rc;
}

enum rc
store_row_step(struct db *db, const struct store_identity *identity,
    int64_t number, struct record *r, struct db_stmt **s)
{
	enum rc rc;

	*s = db_stmt(db, QUERY_FIND);
	db_bindf(
	    *s, "sssi", identity->key, identity->path, identity->scope, number);
	rc = db_step_row(*s);
	if (rc != RC_OK)
		return rc;
	rc = row_read_key(*s, false, r);
	if (rc == RC_CORRUPT)
		store_row_bad(db, "once_key", r->id);
	return rc;
}

enum rc
store_row_find(struct db *db, const struct store_identity *identity,
    int64_t number, struct record *r)
{
	struct db_stmt *s;
	enum rc rc = store_row_step(db, identity, number, r, &s);

	db_reset(s);
	return rc;
}

/* --- bad rows ------------------------------------------------------------- */

void
store_row_bad(const struct db *db, const char *table, int64_t id)
{
	rows_bad(db_file(db), table, id);
}
