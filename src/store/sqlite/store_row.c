/*
 * See store_row.h.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "store_impl.h"
#include "store_row.h"

/* Number of bad rows that are remembered as logged, and the most lines about
 * bad rows in one period (ms): a pass may skip any number of them. */
#define REMEMBERED 64
#define PERIOD     60000

static bool
has_length(const char *text, size_t min, size_t max)
{
	size_t n = text != NULL ? strlen(text) : 0;

	return text != NULL && n >= min && n <= max;
}

static bool
is_identity(const char *scope, const char *path, const char *key)
{
	return has_length(scope, 0, LIMIT_SCOPE) &&
	    has_length(path, 1, LIMIT_PATH) && *path == '/' &&
	    has_length(key, 1, LIMIT_KEY);
}

/* --- the readers ---------------------------------------------------------- */

static bool
parse_state(const char *word, int *value)
{
	enum record_state state;
	bool found = record_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

static bool
parse_effect_state(const char *word, int *value)
{
	enum store_effect_state state;
	bool found = store_effect_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

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
	WORD(record, state, parse_state),
	DB_MEMBER('d', record, attempt),
	DB_MEMBER('f', record, token),
	DB_MEMBER('i', record, owner),
	DB_MEMBER('m', record, locked_until),
	DB_MEMBER('x', record, fingerprint),
	DB_MEMBER('s', record, recipe),
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
	WORD(store_effect, state, parse_effect_state),
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
		(identified && !is_identity(r->scope, r->path, r->key))))
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
	    (!is_identity(e->scope, e->path, e->key) ||
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

/* --- changes -------------------------------------------------------------- */

void
store_row_change(struct record *r, struct store_change *c)
{
	memset(c, 0, sizeof(*c));
	c->id = r->id;
	c->from = r->state;
	c->scope = r->scope;
	c->path = r->path;
	c->key = r->key;
	r->scope = r->path = r->key = NULL;
}

void
store_changes_free(struct store_change *changes, int n)
{
	for (int i = 0; i < n; i++) {
		free((void *)(uintptr_t)changes[i].scope);
		free((void *)(uintptr_t)changes[i].path);
		free((void *)(uintptr_t)changes[i].key);
		memset(&changes[i], 0, sizeof(changes[i]));
	}
}

/* --- bad rows ------------------------------------------------------------- */

/* Whether there may be one more line in this period, and whether it is the last
 * one. */
static bool
may_log(bool *last)
{
	static _Atomic int64_t since;
	static atomic_uint lines;
	const int64_t now = clock_mono();
	int64_t began = atomic_load(&since);
	unsigned line;

	/* One thread begins the next period. */
	if ((began == 0 || now - began >= PERIOD) &&
	    atomic_compare_exchange_strong(&since, &began, now))
		atomic_store(&lines, 0);
	line = atomic_fetch_add(&lines, 1) + 1;
	*last = line == REMEMBERED;
	return line <= REMEMBERED;
}

/* A number that stands for the row, and is not 0. */
static uint64_t
mark_of(const char *table, int64_t id)
{
	uint64_t mark = (uint64_t)id;

	for (; *table != '\0'; table++)
		mark = mark * 31 + (unsigned char)*table;
	return mark != 0 ? mark : 1;
}

void
store_row_bad(const struct db *db, const char *table, int64_t id)
{
	static _Atomic uint64_t seen[REMEMBERED];
	static atomic_uint next;
	const uint64_t mark = mark_of(table, id);
	bool last;

	for (unsigned i = 0; i < REMEMBERED; i++) {
		if (atomic_load(&seen[i]) == mark)
			return;
	}
	atomic_store(&seen[atomic_fetch_add(&next, 1) % REMEMBERED], mark);
	metrics_count(METRICS_BAD_ROWS);
	if (!may_log(&last))
		return;
	log_event(LOG_ERROR, "bad-row", NULL, LOG_S("database", db_file(db)),
	    LOG_S("table", table), LOG_I("id", id),
	    LOG_S("message",
		last ? "it makes no sense, and is skipped; so may be more "
		       "rows: oncectl doctor counts them"
		     : "it makes no sense, and is skipped"));
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
