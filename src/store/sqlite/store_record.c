/*
 * See store_record.h.
 */
#include "config.h"

#include "clock.h"
#include "store_kept.h"
#include "store_place.h"
#include "store_row.h"
#include "store_record.h"

/* The parameters of $record_was, and of $record_values and the spec, in
 * queries.sql. */
#define WAS "isdt"
#define SET "sdtzzsiizsizzzzdtdzdzztbisui"

enum rc
store_record_read(struct db *db, int64_t id, struct record *r)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECORD_READ);
	enum rc rc;

	db_bindf(s, "i", id);
	rc = store_row_next(db, s, r);
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

struct step_time
store_record_time(int64_t now)
{
	return (struct step_time){ .now = now, .wall = clock_wall() };
}

/* clang-format off */
#define WAS_ARGUMENTS(was) \
	(was)->id, record_state_name((was)->state), (was)->attempt, \
	(was)->token
#define SET_ARGUMENTS(r, spec) \
	record_state_name((r)->state), (r)->attempt, (r)->token, (r)->owner, \
	(r)->locked_until, (r)->resume ? "resume" : NULL, (r)->retention, \
	(r)->updated_at, (r)->expires_at, (r)->gone ? "gone" : NULL, \
	(r)->expired_retention, (r)->attempt_lock, (r)->lock_file, \
	(r)->reconcile_delay, (r)->reconcile_after, (r)->reconcile_attempts, \
	(r)->resource, (r)->accepted, (r)->queued_at, (r)->kept, \
	(int64_t)(r)->status, (r)->body_length, (r)->last_error, \
	(r)->fingerprint, sizeof((r)->fingerprint), (r)->caller, (r)->peer, \
	(r)->cookie[0] != '\0' ? (r)->cookie : NULL, (spec)
/* clang-format on */

enum rc
store_record_insert(struct db *db, const struct store_identity *identity,
    int64_t number, const struct record *r)
{
	struct db_stmt *s;
	int64_t spec;
	enum rc rc;

	record_check(r);
	rc = store_place_spec(db, r->fingerprint_spec, &spec);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(db, QUERY_RECORD_NEW);
	db_bindf(s, "isss" SET "iu", r->id, identity->key, identity->path,
	    identity->scope, SET_ARGUMENTS(r, spec), number, r->downstream);
	return db_change_one(s, RC_CORRUPT);
}

static enum rc
write_row(struct db *db, const struct record *was, const struct record *r,
    const struct kept_columns *answer)
{
	int64_t spec = -1; /* it stays */
	struct db_stmt *s;
	enum rc rc;

	if (r->fingerprint_spec != was->fingerprint_spec &&
	    (rc = store_place_spec(db, r->fingerprint_spec, &spec)) != RC_OK)
		return rc;
	if (answer == NULL) {
		s = db_stmt(db, QUERY_RECORD_WRITE);
		db_bindf(
		    s, WAS SET, WAS_ARGUMENTS(was), SET_ARGUMENTS(r, spec));
	} else {
		s = db_stmt(db, QUERY_RECORD_WRITE_ANSWER);
		db_bindf(s, WAS SET "ddtoo", WAS_ARGUMENTS(was),
		    SET_ARGUMENTS(r, spec), answer->kind,
		    STORE_RESPONSE_VERSION, answer->reason, answer->fields,
		    answer->nfields, answer->body, answer->nbody);
	}
	return db_change_one(s, RC_CORRUPT);
}

enum rc
store_record_write(struct db *db, const struct record *was,
    const struct record *r, const struct step *s,
    const struct kept_columns *answer)
{
	static const struct kept_columns none = { 0 };
	struct db_stmt *stmt;
	enum rc rc;

	if (s->gone) {
		stmt = db_stmt(db, QUERY_RECORD_DELETE);
		db_bindf(stmt, WAS, WAS_ARGUMENTS(was));
		rc = db_change_one(stmt, RC_CORRUPT);
		return rc == RC_OK ? store_kept_delete(db, was->id) : rc;
	}
	record_check(r);
	rc = write_row(db, was, r,
	    s->answer == STEP_SET           ? answer
		: s->answer == STEP_DELETED ? &none
					    : NULL);
	if (rc == RC_OK && s->answer == STEP_DELETED)
		return store_kept_delete(db, was->id);
	if (rc == RC_OK && s->request == STEP_DELETED)
		return store_kept_delete_request(db, was->id);
	return rc;
}
