/*
 * Reads for pages, of a bounded number of rows: a page costs the same on a
 * store of any size.
 */
#include "config.h"

#include <string.h>

#include "downstream.h"
#include "postgres_identity.h"
#include "postgres_row.h"

#include "store_browse.h"

/* Rows of one walk. */
#define WINDOW INT64_C(20000)

/* Reads the rows (id, whether it matches) of a statement that was sent. */
static enum rc
browse_walk(struct pg *pg, struct store_found *found)
{
	int64_t id = 0;
	bool matches;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = pg_sync(pg);
	if (rc == RC_OK)
		rc = pg_result(pg);
	found->all = rc == RC_OK && pg_rows(pg) < WINDOW;
	while (rc == RC_OK && (rc = pg_row(pg, "i?", &id, &matches)) == RC_OK) {
		if (matches && found->n < STORE_BROWSE_ROWS)
			found->id[found->n++] = id;
		found->count += matches;
	}
	if (!found->all)
		found->next = id;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- keys ----------------------------------------------------------------- */

struct browse {
	struct store *store;
	const struct store_browse *what;
	unsigned char first[POSTGRES_DIGEST_LEN], last[POSTGRES_DIGEST_LEN];
	struct store_found *found;
};

/* The first of these that applies decides: the rows that an index finds are
 * few. */
static enum rc
browse_keys(struct pg *pg, struct browse *b)
{
	const struct store_browse *w = b->what;
	const char *state =
	    w->state != RECORD_NONE ? record_state_name(w->state) : NULL;
	bool by_number = false;
	enum rc rc;

	if (w->key != NULL) {
		pg_send(pg, PG_QUERY_BROWSE_KEY, "sssubbi", w->key, w->path,
		    state, w->downstream, b->first, sizeof(b->first), b->last,
		    sizeof(b->last), WINDOW);
	} else if (w->downstream == NULL && w->state == RECORD_IN_PROGRESS) {
		pg_send(pg, PG_QUERY_BROWSE_RUNNING, "si", w->path, WINDOW);
	} else if (w->downstream == NULL &&
	    (w->state == RECORD_PENDING || w->state == RECORD_UNKNOWN ||
		w->state == RECORD_DEAD_LETTER)) {
		pg_send(
		    pg, PG_QUERY_BROWSE_OPEN, "ssi", state, w->path, WINDOW);
	} else {
		by_number = true;
		pg_send(pg, PG_QUERY_BROWSE_ALL, "issui",
		    w->before > 0 ? w->before : INT64_MAX, w->path, state,
		    w->downstream, WINDOW);
	}
	rc = browse_walk(pg, b->found);
	/* Only numbers of keys are a place from which to look further. */
	if (!by_number)
		b->found->next = 0;
	return rc;
}

/* The key with that downstream key, if that is told by the downstream key
 * itself, or its outcome is open. */
static enum rc
find_told(struct store *s, struct pg *pg, const char *downstream, int64_t *id)
{
	enum rc rc, open;
	int64_t other = 0;

	pg_send(pg, PG_QUERY_FIND_TOLD, "iu",
	    downstream_id(s->secret, downstream), downstream);
	pg_send(pg, PG_QUERY_FIND_OPEN, "u", downstream);
	if ((rc = pg_sync(pg)) != RC_OK)
		return rc;
	if ((rc = pg_one(pg, "i", id)) != RC_OK && rc != RC_NOTFOUND)
		return rc;
	open = pg_one(pg, "i", &other);
	if (rc == RC_OK)
		return open == RC_NOTFOUND ? RC_OK : open;
	*id = other;
	return open;
}

/* Reads the key that was told. */
static enum rc
browse_told(struct pg *pg, struct browse *b)
{
	const struct store_browse *w = b->what;
	struct store_found *found = b->found;
	struct record r;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = find_told(b->store, pg, w->downstream, &found->id[0]);
	if (rc != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_BROWSE_ROW, "i", found->id[0]);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = pg_result(pg)) != RC_OK ||
	    (rc = postgres_row_next(b->store, pg, &r)) != RC_OK)
		return rc;
	found->all = true;
	found->n = (w->key == NULL || strcmp(w->key, r.key) == 0) &&
	    (w->path == NULL || strcmp(w->path, r.path) == 0) &&
	    (w->state == RECORD_NONE || w->state == r.state);
	found->count = (int64_t)found->n;
	record_free(&r);
	return RC_OK;
}

static enum rc
browse_run(struct pg *pg, void *arg)
{
	struct browse *b = arg;
	enum rc rc = RC_NOTFOUND;

	if (b->what->downstream != NULL && b->what->before == 0)
		rc = browse_told(pg, b);
	return rc == RC_NOTFOUND ? browse_keys(pg, b) : rc;
}

enum rc
postgres_browse(
    struct store *s, const struct store_browse *what, struct store_found *found)
{
	struct browse b = { .store = s, .what = what, .found = found };
	enum rc rc = RC_OK;

	memset(found, 0, sizeof(*found));
	if (what->key != NULL)
		rc = postgres_identity_range(
		    s->secret, what->key, b.first, b.last);
	return rc == RC_OK ? postgres_read(s, browse_run, &b) : rc;
}

struct by_downstream {
	struct store *store;
	const char *downstream;
	int64_t id;
};

static enum rc
find_run(struct pg *pg, void *arg)
{
	struct by_downstream *d = arg;
	enum rc rc = find_told(d->store, pg, d->downstream, &d->id);

	if (rc != RC_NOTFOUND)
		return rc;
	pg_send(pg, PG_QUERY_FIND_DOWNSTREAM, "u", d->downstream);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "i", &d->id) : rc;
}

enum rc
postgres_find_downstream(struct store *s, const char *downstream, int64_t *id)
{
	struct by_downstream d = { s, downstream, 0 };
	enum rc rc = postgres_read(s, find_run, &d);

	if (rc == RC_OK)
		*id = d.id;
	return rc;
}

struct browse_row {
	struct store *store;
	int64_t id;
	struct record *key;
	struct response *head;
	struct store_effect *effect;
};

static enum rc
row_run(struct pg *pg, void *arg)
{
	struct browse_row *b = arg;
	struct kept_head h;
	enum rc rc;

	pg_send(pg, PG_QUERY_BROWSE_ROW, "i", b->id);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = pg_result(pg)) != RC_OK ||
	    (rc = postgres_row_next(b->store, pg, b->key)) != RC_OK)
		return rc;
	if (b->head == NULL || !b->key->kept)
		return RC_OK;
	if ((rc = postgres_row_head(pg, &h)) == RC_OK)
		rc = kept_head_read(&h, b->key, b->head);
	if (rc != RC_OK) {
		response_free(b->head);
		response_init(b->head);
	}
	return RC_OK;
}

enum rc
postgres_browse_key(
    struct store *s, int64_t id, struct record *key, struct response *head)
{
	struct browse_row b = {
		.store = s, .id = id, .key = key, .head = head
	};

	memset(key, 0, sizeof(*key));
	return postgres_look(s, row_run, &b);
}

/* --- effects -------------------------------------------------------------- */

struct browse_effects {
	int64_t key_id;
	struct store_found *found;
};

static enum rc
effects_run(struct pg *pg, void *arg)
{
	const struct browse_effects *b = arg;
	enum rc rc;

	if (b->key_id == 0)
		pg_send(pg, PG_QUERY_BROWSE_DEAD_EFFECTS, "i", WINDOW);
	else
		pg_send(pg, PG_QUERY_BROWSE_EFFECTS, "ii", b->key_id, WINDOW);
	rc = browse_walk(pg, b->found);
	b->found->next = 0;
	return rc;
}

enum rc
postgres_browse_effects(
    struct store *s, int64_t key_id, struct store_found *found)
{
	struct browse_effects b = { key_id, found };

	return postgres_look(s, effects_run, &b);
}

static enum rc
effect_run(struct pg *pg, void *arg)
{
	const struct browse_row *b = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_BROWSE_EFFECT, "i", b->id);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = pg_result(pg)) != RC_OK)
		return rc;
	return postgres_row_next_effect(b->store, pg, b->effect);
}

enum rc
postgres_browse_effect(struct store *s, int64_t id, struct store_effect *e)
{
	struct browse_row b = { .store = s, .id = id, .effect = e };

	memset(e, 0, sizeof(*e));
	return postgres_look(s, effect_run, &b);
}
