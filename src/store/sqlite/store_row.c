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
store_row_read_effect(struct db_stmt *s, struct store_effect *e)
{
	memset(e, 0, sizeof(*e));
	return rows_effect_end(e, db_members(s, rows_effect, rows_neffect, e));
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
store_row_next_effect(struct db *db, struct db_stmt *s, struct store_effect *e)
{
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK &&
	    (rc = store_row_read_effect(s, e)) == RC_CORRUPT)
		store_row_bad(db, "once_effect", e->id);
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

/* --- all of them ---------------------------------------------------------- */

struct numbered {
	int64_t identity;
	bool twin;   /* an older row has the same key, path and scope */
	bool hidden; /* neither recent nor listed: no sweep finds it */
};

/* Reads the current row.  RC_CORRUPT: it makes no sense, or has the number of
 * another identity, so that no request finds it, or is the second one of its
 * identity, or is found by no sweep. */
static enum rc
check_row(struct db_stmt *s, const struct identity_seed *seed, struct record *r)
{
	static const struct row_member number[] = {
		ROW_MEMBER('i', numbered, identity),
		ROW_MEMBER('?', numbered, twin),
		ROW_MEMBER('?', numbered, hidden),
	};
	struct store_identity texts;
	struct numbered got;
	enum rc rc;

	if ((rc = store_row_read(s, r)) != RC_OK)
		return rc;
	texts.scope = r->scope;
	texts.path = r->path;
	texts.key = r->key;
	rc = db_members(s, number, sizeof(number) / sizeof(number[0]), &got);
	if (rc == RC_OK &&
	    (got.twin || got.hidden ||
		got.identity != identity_number(seed, &texts)))
		rc = RC_CORRUPT;
	record_free(r);
	return rc;
}

enum rc
store_row_find_bad(struct db *db, const struct identity_seed *seed,
    struct findings_rows *found)
{
	struct db_stmt *s = db_stmt(db, QUERY_ROWS);
	struct store_effect e;
	struct record r;
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK) {
		rc = check_row(s, seed, &r);
		if (rc == RC_CORRUPT)
			findings_row(found, "once_key", r.id);
		else if (rc != RC_OK)
			goto out;
	}
	if (rc != RC_NOTFOUND)
		return rc;
	s = db_stmt(db, QUERY_EFFECT_ROWS);
	while ((rc = db_step_row(s)) == RC_OK) {
		if ((rc = store_row_read_effect(s, &e)) == RC_OK)
			store_effect_free(&e);
		else if (rc == RC_CORRUPT)
			findings_row(found, "once_effect", e.id);
		else
			goto out;
	}
out:
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
