/*
 * Expire: deletes keys past their retention, oldest first, or makes them
 * markers.  A batch is one statement.  It is bounded, because requests wait for
 * the rows that it locks.
 */
#include "config.h"

#include <string.h>

#include "fault.h"
#include "postgres_row.h"

/* Bodies of one batch (bytes). */
#define BYTES_MAX (8 * 1024 * 1024)

struct expire {
	const struct store *s;
	int limit, n;
	struct store_change *changes; /* room for limit */
};

/* Reads the current row.  RC_CORRUPT: its texts make no sense. */
static enum rc
read_expired(struct pg *pg, struct store_change *c)
{
	char *scope = NULL, *path = NULL, *key = NULL;
	const char *was = NULL, *becomes = NULL;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	rc = pg_row(pg, "issspp", &c->id, &scope, &path, &key, &was, &becomes);
	c->scope = scope;
	c->path = path;
	c->key = key;
	if (rc == RC_OK && (was == NULL || !record_state_parse(was, &c->from)))
		rc = RC_CORRUPT;
	c->to = becomes != NULL ? RECORD_EXPIRED : RECORD_NONE;
	return rc;
}

static enum rc
run_expire(struct pg *pg, void *arg)
{
	struct expire *e = arg;
	struct store_change *c;
	enum rc rc;

	store_changes_free(e->changes, e->n);
	e->n = 0;
	pg_send(
	    pg, PG_QUERY_EXPIRE, "ii", (int64_t)e->limit, (int64_t)BYTES_MAX);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_result(pg);
	for (int i = 0; rc == RC_OK && i < pg_rows(pg); i++) {
		c = &e->changes[e->n];
		rc = read_expired(pg, c);
		if (rc == RC_OK) {
			e->n++;
			FAULT(EXPIRE_KEY);
			continue;
		}
		if (rc == RC_CORRUPT) {
			postgres_row_bad(e->s, "once_key", c->id);
			rc = RC_OK;
		}
		store_changes_free(c, 1);
	}
	return rc;
}

enum rc
postgres_expire(
    struct store *s, int limit, struct store_change *changes, int *n)
{
	struct expire e = { .s = s, .changes = changes };
	enum rc rc;

	*n = 0;
	if (limit < 0)
		return RC_INVALID;
	e.limit = limit < STORE_EXPIRE_MAX ? limit : STORE_EXPIRE_MAX;
	rc = postgres_write(s, run_expire, &e);
	if (rc == RC_OK)
		*n = e.n; /* the caller owns them now */
	else
		store_changes_free(changes, e.n);
	return rc;
}
