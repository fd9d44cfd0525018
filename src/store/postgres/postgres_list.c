/*
 * Lists of keys and of effects, for operators.
 *
 * Reads are short: a list of a million keys into a pager holds no transaction
 * open meanwhile.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "postgres_identity.h"
#include "postgres_row.h"
#include "rows.h"
#include "store_operator.h"

/* Rows that a list reads at a time. */
#define PAGE 64

struct store_cursor {
	struct store_cursor_base base;
	enum pg_query query;
	char *key, *scope, *path;
	const char *state;
	unsigned char first[POSTGRES_DIGEST_LEN], last[POSTGRES_DIGEST_LEN];
	int64_t created_before, since;
	int64_t id;                /* the only row; 0: all */
	int64_t after_id, last_id; /* of rows that were read */

	union {
		struct store_listed key[PAGE];
		struct store_effect effect[PAGE];
	} rows;
	size_t next, n;
	bool end;
};

/* Copies the text; false: no memory. */
static bool
list_copy(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return *out != NULL || text == NULL;
}

static enum rc
list_new(struct store *s, enum pg_query query, int64_t id, int64_t since,
    struct store_cursor **out)
{
	struct store_cursor *c;

	*out = c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->base.store = s;
	c->query = query;
	c->since = since;
	c->after_id = id != 0 ? id - 1 : 0;
	c->id = id;
	return RC_OK;
}

enum rc
postgres_list(
    struct store *s, const struct store_filter *f, struct store_cursor **out)
{
	struct store_cursor *c;
	enum rc rc;

	rc = list_new(s, f->key != NULL ? PG_QUERY_LIST_KEY : PG_QUERY_LIST,
	    f->id, f->since, out);
	if (rc != RC_OK)
		return rc;
	c = *out;
	if (f->state != RECORD_NONE)
		c->state = record_state_name(f->state);
	c->created_before =
	    f->older_ms > 0 ? postgres_now(s) - f->older_ms : INT64_MAX;
	rc = RC_NOMEM;
	if (list_copy(f->key, &c->key) && list_copy(f->scope, &c->scope) &&
	    list_copy(f->path, &c->path))
		rc = RC_OK;
	if (rc == RC_OK && c->key != NULL)
		rc = postgres_identity_range(
		    s->secret, c->key, c->first, c->last);
	if (rc == RC_OK)
		return rc;
	postgres_list_free(c);
	*out = NULL;
	return rc;
}

enum rc
postgres_list_all(struct store *s, struct store_cursor **out)
{
	return list_new(s, PG_QUERY_LIST_ALL, 0, 0, out);
}

enum rc
postgres_outbox_list(struct store *s, const struct store_effect_filter *f,
    struct store_cursor **out)
{
	struct store_cursor *c;
	enum rc rc;

	rc = list_new(s, PG_QUERY_EFFECT_LIST, f->id, f->since, out);
	if (rc != RC_OK)
		return rc;
	c = *out;
	if (f->state != STORE_EFFECT_NONE)
		c->state = store_effect_state_name(f->state);
	if (list_copy(f->scope, &c->scope) && list_copy(f->path, &c->path))
		return RC_OK;
	postgres_list_free(c);
	*out = NULL;
	return RC_NOMEM;
}

static bool
is_of_effects(const struct store_cursor *c)
{
	return c->query == PG_QUERY_EFFECT_LIST;
}

/* Frees the rows that were read, and not taken. */
static void
list_drop(struct store_cursor *c)
{
	for (; c->next < c->n; c->next++) {
		if (is_of_effects(c))
			store_effect_free(&c->rows.effect[c->next]);
		else
			store_listed_free(&c->rows.key[c->next]);
	}
	c->next = c->n = 0;
}

void
postgres_list_free(struct store_cursor *c)
{
	list_drop(c);
	free(c->key);
	free(c->scope);
	free(c->path);
	free(c);
}

static void
list_send(const struct store_cursor *c, struct pg *pg)
{
	const int64_t rows = c->id != 0 ? 1 : PAGE;

	if (is_of_effects(c))
		pg_send(pg, c->query, "isssii", c->after_id, c->scope, c->path,
		    c->state, c->since, rows);
	else if (c->query == PG_QUERY_LIST_ALL)
		pg_send(pg, c->query, "ii", c->after_id, rows);
	else if (c->key == NULL)
		pg_send(pg, c->query, "isssiii", c->after_id, c->scope, c->path,
		    c->state, c->since, c->created_before, rows);
	else
		pg_send(pg, c->query, "isssiiisbb", c->after_id, c->scope,
		    c->path, c->state, c->since, c->created_before, rows,
		    c->key, c->first, sizeof(c->first), c->last,
		    sizeof(c->last));
}

/* Reads the current row of a key. */
static enum rc
list_read_key(
    const struct store_cursor *c, struct pg *pg, struct store_listed *l)
{
	struct kept_head h;
	enum rc rc;

	memset(l, 0, sizeof(*l));
	store_inline_answer_init(&l->answer);
	rc = postgres_row_read(pg, &l->key);
	if (rc != RC_OK || c->query != PG_QUERY_LIST_ALL)
		return rc;
	rc = pg_members(pg, rows_listed, rows_nlisted, l);
	if (rc == RC_OK && l->key.kept && postgres_row_head(pg, &h) == RC_OK)
		kept_head_small(&h, &l->key, &l->answer);
	return rc;
}

/* Reads the next row into the page, unless it makes no sense. */
static enum rc
list_read(struct store_cursor *c, struct pg *pg)
{
	struct store_effect *e = &c->rows.effect[c->n];
	struct store_listed *l = &c->rows.key[c->n];
	const bool effects = is_of_effects(c);
	enum rc rc;

	if ((rc = pg_next(pg)) != RC_OK)
		return rc;
	rc =
	    effects ? postgres_row_read_effect(pg, e) : list_read_key(c, pg, l);
	if (rc != RC_OK && rc != RC_CORRUPT)
		return rc;
	c->last_id = effects ? e->id : l->key.id;
	if (rc == RC_CORRUPT)
		postgres_row_bad(c->base.store,
		    effects ? "once_effect" : "once_key", c->last_id);
	else if (c->id == 0 || c->id == c->last_id)
		c->n++;
	else if (effects)
		store_effect_free(e);
	else
		store_listed_free(l);
	return RC_OK;
}

static enum rc
list_run(struct pg *pg, void *arg)
{
	struct store_cursor *c = arg;
	enum rc rc;

	list_drop(c);
	c->last_id = c->after_id;
	list_send(c, pg);
	rc = pg_sync(pg);
	if (rc == RC_OK)
		rc = pg_result(pg);
	c->end = rc == RC_OK && (c->id != 0 || pg_rows(pg) < PAGE);
	while (rc == RC_OK)
		rc = list_read(c, pg);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* RC_OK: the row at c->next is there.  A page may be empty although rows
 * follow, because those that make no sense are skipped. */
static enum rc
list_advance(struct store_cursor *c)
{
	enum rc rc = RC_OK;

	while (rc == RC_OK && c->next == c->n && !c->end) {
		rc = postgres_read(c->base.store, list_run, c);
		if (rc == RC_OK)
			c->after_id = c->last_id;
		else
			list_drop(c);
	}
	if (rc == RC_OK && c->next == c->n)
		rc = RC_NOTFOUND;
	return rc;
}

enum rc
postgres_list_next(struct store_cursor *c, struct store_listed *l)
{
	enum rc rc = list_advance(c);

	if (rc == RC_OK)
		*l = c->rows.key[c->next++];
	return rc;
}

enum rc
postgres_outbox_next(struct store_cursor *c, struct store_effect *e)
{
	enum rc rc = list_advance(c);

	if (rc == RC_OK)
		*e = c->rows.effect[c->next++];
	return rc;
}
