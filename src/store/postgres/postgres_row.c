/*
 * See postgres_row.h.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "postgres_row.h"

static enum rc
row_read_key(struct pg *pg, bool identified, struct record *r)
{
	memset(r, 0, sizeof(*r));
	return rows_record_end(
	    r, identified, pg_members(pg, rows_record, rows_nrecord, r));
}

enum rc
postgres_row_read(struct pg *pg, struct record *r)
{
	return row_read_key(pg, true, r);
}

enum rc
postgres_row_next(const struct store *s, struct pg *pg, struct record *r)
{
	enum rc rc;

	while ((rc = pg_next(pg)) == RC_OK &&
	    (rc = postgres_row_read(pg, r)) == RC_CORRUPT)
		postgres_row_bad(s, "once_key", r->id);
	return rc;
}

enum rc
postgres_row_find(const struct store *s, struct pg *pg, struct record *r)
{
	enum rc rc;

	memset(r, 0, sizeof(*r));
	if ((rc = pg_result(pg)) != RC_OK || (rc = pg_next(pg)) != RC_OK)
		return rc;
	rc = row_read_key(pg, false, r);
	if (rc == RC_CORRUPT)
		postgres_row_bad(s, "once_key", r->id);
	return rc;
}

enum rc
postgres_row_head(struct pg *pg, struct kept_head *out)
{
	return pg_members(pg, kept_head, kept_nhead, out);
}

void
postgres_row_bad(const struct store *s, const char *table, int64_t id)
{
	rows_bad(txn_database(s->pool), table, id);
}
