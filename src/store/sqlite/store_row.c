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
	memset(r, 0, sizeof(*r));
	rc = rows_record_end(
	    r, false, db_members(*s, rows_record, rows_nrecord, r));
	if (rc == RC_CORRUPT)
		rows_bad(db_file(db), "once_key", r->id);
	return rc;
}

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

enum rc
store_row_list(struct db *db, int64_t newest, int64_t recent)
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

enum rc
store_row_list_recent(struct db *db)
{
	int64_t newest, recent;
	enum rc rc =
	    db_onef(db_stmt(db, QUERY_RECENT_NOW), "ii", &newest, &recent);

	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	return store_row_list(db, newest, recent);
}
