/*
 * See postgres_row.h.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "postgres_row.h"

#define WORD(type, member, parse)                                \
	{                                                        \
#member, 'e', offsetof(struct type, member),     \
		    sizeof(((struct type *)NULL)->member), parse \
	}

/* The columns of $row, in their order. */
static const struct pg_member row[] = {
	PG_MEMBER('i', record, id),
	PG_MEMBER('s', record, key),
	PG_MEMBER('s', record, path),
	PG_MEMBER('s', record, scope),
	WORD(record, state, rows_state),
	PG_MEMBER('d', record, attempt),
	PG_MEMBER('f', record, token),
	PG_MEMBER('i', record, owner),
	PG_MEMBER('m', record, locked_until),
	PG_MEMBER('x', record, fingerprint),
	PG_MEMBER('s', record, fingerprint_spec),
	PG_MEMBER('u', record, downstream),
	PG_MEMBER('f', record, recovery_point),
	PG_MEMBER('?', record, resume),
	PG_MEMBER('m', record, retention),
	PG_MEMBER('i', record, created_at),
	PG_MEMBER('i', record, updated_at),
	PG_MEMBER('m', record, expires_at),
	PG_MEMBER('?', record, gone),
	PG_MEMBER('m', record, expired_retention),
	PG_MEMBER('i', record, attempt_lock),
	PG_MEMBER('i', record, lock_file),
	PG_MEMBER('m', record, reconcile_delay),
	PG_MEMBER('m', record, reconcile_after),
	PG_MEMBER('d', record, reconcile_attempts),
	PG_MEMBER('f', record, resource),
	PG_MEMBER('?', record, accepted),
	PG_MEMBER('?', record, queued),
	PG_MEMBER('m', record, queued_at),
	PG_MEMBER('?', record, kept),
	PG_MEMBER('d', record, status),
	PG_MEMBER('i', record, body_length),
	PG_MEMBER('s', record, last_error),
};

/* Those of $effect. */
static const struct pg_member effect[] = {
	PG_MEMBER('i', store_effect, id),
	PG_MEMBER('i', store_effect, key_id),
	PG_MEMBER('u', store_effect, effect_key),
	PG_MEMBER('s', store_effect, scope),
	PG_MEMBER('s', store_effect, path),
	PG_MEMBER('s', store_effect, key),
	PG_MEMBER('s', store_effect, topic),
	WORD(store_effect, state, rows_effect_state),
	PG_MEMBER('d', store_effect, attempts),
	PG_MEMBER('?', store_effect, has_turn),
	PG_MEMBER('m', store_effect, next_at),
	PG_MEMBER('i', store_effect, owner),
	PG_MEMBER('a', store_effect, reference),
	PG_MEMBER('s', store_effect, last_error),
	PG_MEMBER('i', store_effect, created_at),
	PG_MEMBER('i', store_effect, updated_at),
};

/* Those of $response. */
struct head {
	const char *reason;
	int64_t kind, response_version;
	struct pg_bytes headers, body;
};

static const struct pg_member head[] = {
	PG_MEMBER('p', head, reason),
	PG_MEMBER('i', head, kind),
	PG_MEMBER('b', head, headers),
	PG_MEMBER('b', head, body),
	PG_MEMBER('i', head, response_version),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* identified: the columns have the identity. */
static enum rc
row_read_key(struct pg *pg, bool identified, struct record *r)
{
	int64_t id;
	enum rc rc;

	memset(r, 0, sizeof(*r));
	rc = pg_members(pg, row, COUNT(row), r);
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
postgres_row_read(struct pg *pg, struct record *r)
{
	return row_read_key(pg, true, r);
}

enum rc
postgres_row_read_effect(struct pg *pg, struct store_effect *e)
{
	int64_t id;
	enum rc rc;

	memset(e, 0, sizeof(*e));
	rc = pg_members(pg, effect, COUNT(effect), e);
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
postgres_row_next(const struct store *s, struct pg *pg, struct record *r)
{
	enum rc rc;

	while ((rc = pg_next(pg)) == RC_OK &&
	    (rc = postgres_row_read(pg, r)) == RC_CORRUPT)
		postgres_row_bad(s, "once_key", r->id);
	return rc;
}

enum rc
postgres_row_next_effect(
    const struct store *s, struct pg *pg, struct store_effect *e)
{
	enum rc rc;

	while ((rc = pg_next(pg)) == RC_OK &&
	    (rc = postgres_row_read_effect(pg, e)) == RC_CORRUPT)
		postgres_row_bad(s, "once_effect", e->id);
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
	struct head h;
	enum rc rc = pg_members(pg, head, COUNT(head), &h);

	if (rc == RC_OK)
		*out = (struct kept_head){ h.reason, h.kind, h.response_version,
			h.headers.data, h.headers.n, h.body.data, h.body.n };
	return rc;
}

void
postgres_row_bad(const struct store *s, const char *table, int64_t id)
{
	rows_bad(txn_database(s->pool), table, id);
}
