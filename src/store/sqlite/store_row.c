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

#define WORD(type, member, parse)                                \
	{                                                        \
#member, 'e', offsetof(struct type, member),     \
		    sizeof(((struct type *)NULL)->member), parse \
	}

/* The columns of $row, in their order. */
static const struct db_member row[] = {
	DB_MEMBER('i', record, id),
	DB_MEMBER('s', record, key),
	DB_MEMBER('s', record, path),
	DB_MEMBER('s', record, scope),
	WORD(record, state, rows_state),
	DB_MEMBER('d', record, attempt),
	DB_MEMBER('f', record, token),
	DB_MEMBER('i', record, owner),
	DB_MEMBER('m', record, locked_until),
	DB_MEMBER('x', record, fingerprint),
	DB_MEMBER('s', record, fingerprint_spec),
	DB_MEMBER('u', record, downstream),
	DB_MEMBER('f', record, recovery_point),
	DB_MEMBER('?', record, resume),
	DB_MEMBER('m', record, retention),
	DB_MEMBER('i', record, created_at),
	DB_MEMBER('i', record, updated_at),
	DB_MEMBER('m', record, expires_at),
	DB_MEMBER('?', record, gone),
	DB_MEMBER('m', record, expired_retention),
	DB_MEMBER('i', record, attempt_lock),
	DB_MEMBER('i', record, lock_file),
	DB_MEMBER('m', record, reconcile_delay),
	DB_MEMBER('m', record, reconcile_after),
	DB_MEMBER('d', record, reconcile_attempts),
	DB_MEMBER('f', record, resource),
	DB_MEMBER('?', record, accepted),
	DB_MEMBER('?', record, queued),
	DB_MEMBER('m', record, queued_at),
	DB_MEMBER('?', record, kept),
	DB_MEMBER('d', record, status),
	DB_MEMBER('i', record, body_length),
	DB_MEMBER('s', record, last_error),
};

/* Those of $effect. */
static const struct db_member effect[] = {
	DB_MEMBER('i', store_effect, id),
	DB_MEMBER('i', store_effect, key_id),
	DB_MEMBER('f', store_effect, effect_key),
	DB_MEMBER('s', store_effect, scope),
	DB_MEMBER('s', store_effect, path),
	DB_MEMBER('s', store_effect, key),
	DB_MEMBER('s', store_effect, topic),
	WORD(store_effect, state, rows_effect_state),
	DB_MEMBER('d', store_effect, attempts),
	DB_MEMBER('?', store_effect, has_turn),
	DB_MEMBER('m', store_effect, next_at),
	DB_MEMBER('i', store_effect, owner),
	DB_MEMBER('a', store_effect, reference),
	DB_MEMBER('s', store_effect, last_error),
	DB_MEMBER('i', store_effect, created_at),
	DB_MEMBER('i', store_effect, updated_at),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* identified: the columns have the identity. */
static enum rc
row_read_key(struct db_stmt *s, bool identified, struct record *r)
{
	int64_t id;
	enum rc rc;

	memset(r, 0, sizeof(*r));
	rc = db_members(s, row, COUNT(row), r);
	r->unconfirmed = r->state == RECORD_COMPLETED && r->token[0] != '\0';
	if (rc == RC_OK &&
	    (!record_is_sound(r) ||
		(identified &&
		    !rows_identity_is_sound(r->scope, r->path, r->key))))
		rc = RC_CORRUPT;
	if (rc == RC_OK)
		return rc;
	id = r->id;
	record_free(r);
	memset(r, 0, sizeof(*r));
	r->id = id;
	return rc;
}

enum rc
store_row_read(struct db_stmt *s, struct record *r)
{
	return row_read_key(s, true, r);
}

enum rc
store_row_read_effect(struct db_stmt *s, struct store_effect *e)
{
	int64_t id;
	enum rc rc;

	memset(e, 0, sizeof(*e));
	rc = db_members(s, effect, COUNT(effect), e);
	if (rc == RC_OK &&
	    (!rows_identity_is_sound(e->scope, e->path, e->key) ||
		strlen(e->effect_key) != RECORD_UUID_LEN || e->topic == NULL))
		rc = RC_CORRUPT;
	if (rc == RC_OK)
		return rc;
	id = e->id;
	store_effect_free(e);
	e->id = id;
	return rc;
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
    int64_t number, struct record *r, struct store_lease *lease,
    struct db_stmt **s)
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
	if (rc == RC_OK && lease != NULL)
		memcpy(lease->recovery_point, r->recovery_point,
		    sizeof(lease->recovery_point));
	return rc;
}

enum rc
store_row_find(struct db *db, const struct store_identity *identity,
    int64_t number, struct record *r, struct store_lease *lease)
{
	struct db_stmt *s;
	enum rc rc = store_row_step(db, identity, number, r, lease, &s);

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

struct bad {
	int64_t n;
	char *names;
	size_t len, size;
};

static void
add_bad(struct bad *bad, const char *table, int64_t id)
{
	char name[64];
	int n;

	bad->n++;
	n = snprintf(name, sizeof(name), "%s%s %" PRId64,
	    bad->len > 0 ? ", " : "", table, id);
	if (bad->len + (size_t)n >= bad->size)
		return; /* the first one is enough */
	memcpy(bad->names + bad->len, name, (size_t)n + 1);
	bad->len += (size_t)n;
}

/* Reads the current row.  RC_CORRUPT: it makes no sense, or has the number of
 * another identity, so that no request finds it, or is the second one of its
 * identity, or is found by no sweep. */
static enum rc
check_row(struct db_stmt *s, const struct identity_seed *seed, struct record *r)
{
	static const struct db_member number[] = {
		DB_MEMBER('i', numbered, identity),
		DB_MEMBER('?', numbered, twin),
		DB_MEMBER('?', numbered, hidden),
	};
	struct store_identity texts;
	struct numbered got;
	enum rc rc;

	if ((rc = store_row_read(s, r)) != RC_OK)
		return rc;
	texts.scope = r->scope;
	texts.path = r->path;
	texts.key = r->key;
	rc = db_members(s, number, COUNT(number), &got);
	if (rc == RC_OK &&
	    (got.twin || got.hidden ||
		got.identity != identity_number(seed, &texts)))
		rc = RC_CORRUPT;
	record_free(r);
	return rc;
}

enum rc
store_row_find_bad(struct db *db, const struct identity_seed *seed, int64_t *n,
    char *names, size_t size)
{
	struct bad bad = { .names = names, .size = size };
	struct db_stmt *s = db_stmt(db, QUERY_ROWS);
	struct store_effect e;
	struct record r;
	enum rc rc;

	names[0] = '\0';
	while ((rc = db_step_row(s)) == RC_OK) {
		rc = check_row(s, seed, &r);
		if (rc == RC_CORRUPT)
			add_bad(&bad, "once_key", r.id);
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
			add_bad(&bad, "once_effect", e.id);
		else
			goto out;
	}
	*n = bad.n;
out:
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
